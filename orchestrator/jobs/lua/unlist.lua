-- Removes tenants without records from the list, unless they submitted lately: a submission may be in progress.
-- KEYS[1]: the list itself, not a tenant's prefix. ARGV: now, minimum ms since the last submission, then tenants
for i = 3, #ARGV do
  local at = redis.call('ZSCORE', P, ARGV[i])
  if at and tonumber(at) < now - tonumber(ARGV[2]) then redis.call('ZREM', P, ARGV[i]) end
end
return 'done'
