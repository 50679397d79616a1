-- Takes providers' batches whose next look is due, for a lease, during which no other process takes them.
-- ARGV: now, lease in ms, maximum number of batches. Returns their records, and now.
local found = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', SENT, '-inf', now, 'LIMIT', 0, ARGV[3])) do
  redis.call('ZADD', SENT, now + tonumber(ARGV[2]), id)
  found[#found + 1] = redis.call('HGETALL', P .. 'lane:batch:' .. id)
end
return {found, whole(now)}
