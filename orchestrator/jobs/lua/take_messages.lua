-- Takes messages that are due, for a while in which nobody else sends them.
-- ARGV: now, ms of that while, messages at most, ms after which one is given up
-- Returns for each: endpoint (JSON), its subject, message (JSON).
local found = {}
for _, raw in ipairs(redis.call('HVALS', WEBHOOKS)) do
  local one = cjson.decode(raw)
  local held = tonumber(redis.call('HGET', webhook(one.id), 'hold') or 0)
  if one.disabled or held <= now then
    local left = tonumber(ARGV[3]) - #found
    for _, subject in ipairs(redis.call('ZRANGEBYSCORE', webhook(one.id, 'due'), '-inf', now, 'LIMIT', 0, left)) do
      local list = webhook(one.id, 'about:' .. subject)
      local made = cjson.decode(redis.call('LINDEX', list, 0))
      if one.disabled then
        bury(one.id, subject, made, 'the endpoint is disabled')
        take_off(one.id, subject)
      elseif now - tonumber(made.since or made.at) > tonumber(ARGV[4]) then
        bury(one.id, subject, made, made.error or 'it could not be tried in time')
        take_off(one.id, subject)
      else
        made.tries = made.tries + 1
        redis.call('LSET', list, 0, cjson.encode(made))
        redis.call('ZADD', webhook(one.id, 'due'), now + tonumber(ARGV[2]), subject)
        found[#found + 1] = {raw, subject, cjson.encode(made)}
      end
    end
  end
end
return found
