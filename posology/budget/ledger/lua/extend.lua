-- Extends leases of open reservations; a later end stays. ARGV: now, lease in ms, then ids. Returns the number of open
-- reservations among them.
local n = 0
for i = 3, #ARGV do
  if redis.call('ZSCORE', LEASES, ARGV[i]) then
    redis.call('ZADD', LEASES, 'GT', now + tonumber(ARGV[2]), ARGV[i])
    n = n + 1
  end
end
return n
