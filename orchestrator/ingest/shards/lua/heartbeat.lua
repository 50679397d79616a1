-- Extend a lease. ARGV: now, name, token, lease in ms. Returns 1 while the claim holds, else 0.
local name = ARGV[2]
local state, token = unpack(redis.call('HMGET', shard(name), 'state', 'token'))
if state ~= 'held' or token ~= ARGV[3] then return 0 end
redis.call('ZADD', P .. 'leases', now + tonumber(ARGV[4]), name)
return 1
