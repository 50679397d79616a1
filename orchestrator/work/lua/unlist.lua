-- Take groups without items off their list, unless they offered one lately: an offer may be in progress. KEYS[1]: the list
-- itself, not a group's prefix. ARGV: now, minimum ms since the last offer, groups.
for i = 3, #ARGV do
  local at = redis.call('ZSCORE', P, ARGV[i])
  if at and tonumber(at) < now - tonumber(ARGV[2]) then redis.call('ZREM', P, ARGV[i]) end
end
return 'done'
