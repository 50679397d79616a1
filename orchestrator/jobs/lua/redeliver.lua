-- Queues failures of an endpoint again, oldest first, and enables it. ARGV: now, id, the endpoint, enabled (JSON), at most
if redis.call('HEXISTS', WEBHOOKS, ARGV[2]) == 0 then return -1 end
redis.call('HSET', WEBHOOKS, ARGV[2], ARGV[3])
redis.call('HDEL', webhook(ARGV[2]), 'hold', 'streak')
local room = MESSAGES - tonumber(redis.call('HGET', webhook(ARGV[2]), 'queued') or 0)
local n = 0
while n < math.min(room, tonumber(ARGV[4])) do
  local raw = redis.call('RPOP', webhook(ARGV[2], 'failed'))
  if not raw then break end
  local made = cjson.decode(raw)
  local subject = made.subject
  made.subject, made.error, made.failed, made.status = nil, nil, nil, nil
  made.tries, made.since = 0, whole(now)
  post(ARGV[2], subject, made)
  n = n + 1
end
return n
