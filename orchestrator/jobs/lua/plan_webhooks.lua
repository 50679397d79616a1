-- Lists the tenant's endpoints that are owed messages for the senders, and returns those that are owed one now. ARGV: now
local found = {}
for _, id in ipairs(redis.call('HKEYS', WEBHOOKS)) do
  local at = plan(id)
  if at and at <= now then found[#found + 1] = id end
  -- a process of the version before delivers a message and leaves its time
  local first = redis.call('ZRANGE', webhook(id, 'since'), 0, 0)[1]
  while first and redis.call('EXISTS', webhook(id, 'about:' .. first)) == 0 do
    redis.call('ZREM', webhook(id, 'since'), first)
    first = redis.call('ZRANGE', webhook(id, 'since'), 0, 0)[1]
  end
end
return found
