-- Takes tenants that have no records off the list, unless they have submitted since or a submission may be under way.
-- KEYS[1] is the list itself, no tenant's prefix. ARGV: now, ms for which a tenant is listed at least, then tenants
for i = 3, #ARGV do
  local at = redis.call('ZSCORE', P, ARGV[i])
  if at and tonumber(at) < now - tonumber(ARGV[2]) then redis.call('ZREM', P, ARGV[i]) end
end
return 'done'
