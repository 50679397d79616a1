-- Queues failures of an endpoint again, oldest first, and enables it. ARGV: now, id, maximum number of messages
local known = redis.call('HGET', WEBHOOKS, ARGV[2])
if not known then return -1 end
local endpoint = cjson.decode(known)
if endpoint.disabled then
  endpoint.disabled = nil
  redis.call('HSET', WEBHOOKS, ARGV[2], cjson.encode(endpoint))
end
redis.call('HDEL', webhook(ARGV[2]), 'hold', 'streak')
local room = MESSAGES - tonumber(redis.call('HGET', webhook(ARGV[2]), 'queued') or 0)
local n = 0
while n < math.min(room, tonumber(ARGV[3])) do
  local raw = redis.call('RPOP', webhook(ARGV[2], 'failed'))
  if not raw then break end
  local made = cjson.decode(raw)
  local subject = made.subject
  made.subject, made.error, made.failed, made.status = nil, nil, nil, nil
  made.tries, made.since = 0, whole(now)
  post(ARGV[2], subject, made)
  n = n + 1
end
plan(ARGV[2])
return n
