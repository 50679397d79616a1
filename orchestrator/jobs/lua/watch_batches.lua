-- Takes the provider's batches that are to be looked at now, for a while in which nobody else does.
-- ARGV: now, ms of that while, batches at most. Returns their records, and now.
local found = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', SENT, '-inf', now, 'LIMIT', 0, ARGV[3])) do
  redis.call('ZADD', SENT, now + tonumber(ARGV[2]), id)
  found[#found + 1] = redis.call('HGETALL', P .. 'lane:batch:' .. id)
end
return {found, whole(now)}
