-- Records the result of a try at a message. ARGV: now, endpoint, subject, id of the message, 'delivered', 'again', 'failed',
-- 'gone' (the endpoint wants no more) or 'unknown' (not tried: a newer version knows its type), ms until the next try,
-- HTTP status or '', reason of the failure, ms for which a first failure holds the endpoint's other messages (doubled by
-- each further failure in a row), and the maximum of that
local id, subject, said = ARGV[2], ARGV[3], ARGV[5]
local endpoint, list = redis.call('HGET', WEBHOOKS, id), webhook(id, 'about:' .. subject)
local raw = redis.call('LINDEX', list, 0)
local made = raw and cjson.decode(raw)
if not endpoint or not made or made.id ~= ARGV[4] then return 'over' end  -- another sender was faster, or it is deleted
local stats = webhook(id)

local function later()
  made.error = ARGV[8]
  redis.call('LSET', list, 0, cjson.encode(made))
  redis.call('ZADD', webhook(id, 'due'), now + tonumber(ARGV[6]), subject)
end

if said == 'unknown' then
  made.tries = made.tries - 1
  later()
  plan(id)
  return said
end
redis.call('HINCRBY', P .. 'metrics', 'webhooks|' .. (said == 'delivered' and said or 'failed'), 1)
redis.call('HSET', stats, 'tried', whole(now), 'status', ARGV[7], 'said', ARGV[8])
if said == 'delivered' then
  redis.call('HDEL', stats, 'hold', 'streak')
  redis.call('HINCRBY', stats, 'delivered', 1)
  redis.call('HSET', stats, 'delivered_at', whole(now))
  take_off(id, subject)
  plan(id)
  return said
end
local streak = redis.call('HINCRBY', stats, 'streak', 1)
redis.call('HSET', stats, 'hold', whole(now + math.min(tonumber(ARGV[10]), tonumber(ARGV[9]) * 2 ^ math.min(streak - 1, 20))))
made.status = tonumber(ARGV[7])
if said == 'again' then
  later()
else
  bury(id, subject, made, ARGV[8])
  take_off(id, subject)
end
if said == 'gone' then
  local one = cjson.decode(endpoint)
  one.disabled = whole(now)
  redis.call('HSET', WEBHOOKS, id, cjson.encode(one))
end
plan(id)
return said
