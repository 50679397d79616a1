-- Lists the tenant's endpoints that are owed messages for the senders, and returns those that are owed one now. ARGV: now
local found = {}
for _, id in ipairs(redis.call('HKEYS', WEBHOOKS)) do
  local at = plan(id)
  if at and at <= now then found[#found + 1] = id end
end
return found
