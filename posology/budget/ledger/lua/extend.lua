-- Extends leases of reservations that are open still; a longer one stays. ARGV: now, lease in ms, then ids. Returns how
-- many.
local n = 0
for i = 3, #ARGV do
  if redis.call('ZSCORE', LEASES, ARGV[i]) then
    redis.call('ZADD', LEASES, 'GT', now + tonumber(ARGV[2]), ARGV[i])
    n = n + 1
  end
end
return n
