-- Lists the tenant's endpoints with messages for the senders, and returns those with a message that is due. ARGV: now,
-- maximum ms for which an endpoint, or a message that was never tried, is held.
local latest = now + tonumber(ARGV[2])

-- Corrects times that were set before the clock was put back: ends holds that are too long, and makes messages due that
-- were never tried. Further tries keep their times.
local function bring_back(id)
  if tonumber(redis.call('HGET', webhook(id), 'hold') or 0) > latest then redis.call('HDEL', webhook(id), 'hold') end
  local due = webhook(id, 'due')
  for _, subject in ipairs(redis.call('ZRANGEBYSCORE', due, '(' .. whole(latest), '+inf', 'LIMIT', 0, 100)) do
    local raw = redis.call('LINDEX', webhook(id, 'about:' .. subject), 0)
    if raw and cjson.decode(raw).tries == 0 then redis.call('ZADD', due, now, subject) end
  end
end

local found = {}
for _, id in ipairs(redis.call('HKEYS', WEBHOOKS)) do
  bring_back(id)
  local at = plan(id)
  if at and at <= now then found[#found + 1] = id end
  -- processes of the previous version deliver a message without removing its time
  local first = redis.call('ZRANGE', webhook(id, 'since'), 0, 0)[1]
  while first and redis.call('EXISTS', webhook(id, 'about:' .. first)) == 0 do
    redis.call('ZREM', webhook(id, 'since'), first)
    first = redis.call('ZRANGE', webhook(id, 'since'), 0, 0)[1]
  end
end
return found
