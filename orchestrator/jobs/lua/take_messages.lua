-- Takes due messages of an endpoint for a lease, during which no other process takes them.
-- ARGV: now, endpoint, lease in ms, maximum number of messages, ms after which a message is given up
-- Returns the endpoint (JSON) and for each message: its subject, message (JSON).
local id = ARGV[2]
local raw = redis.call('HGET', WEBHOOKS, id)
local one = raw and cjson.decode(raw)
local found = {raw or ''}
local told = redis.call('HMGET', webhook(id), 'hold', 'paused')
if one and not told[2] and (one.disabled or tonumber(told[1] or 0) <= now) then
  for _, subject in ipairs(redis.call('ZRANGEBYSCORE', webhook(id, 'due'), '-inf', now, 'LIMIT', 0, ARGV[4])) do
    local list = webhook(id, 'about:' .. subject)
    local made = cjson.decode(redis.call('LINDEX', list, 0))
    if one.disabled then
      bury(id, subject, made, 'the endpoint is disabled')
      take_off(id, subject)
    elseif now - tonumber(made.since or made.at) > tonumber(ARGV[5]) then
      bury(id, subject, made, made.error or 'it could not be tried in time')
      take_off(id, subject)
    else
      made.tries = made.tries + 1
      redis.call('LSET', list, 0, cjson.encode(made))
      redis.call('ZADD', webhook(id, 'due'), now + tonumber(ARGV[3]), subject)
      found[#found + 1] = {subject, cjson.encode(made)}
    end
  end
end
plan(id)
return found
