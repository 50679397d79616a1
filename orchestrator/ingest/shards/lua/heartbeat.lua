-- A worker still holds a shard. ARGV: now, name, token, lease in ms. Says 1 while that is so.
local name = ARGV[2]
local state, token = unpack(redis.call('HMGET', shard(name), 'state', 'token'))
if state ~= 'held' or token ~= ARGV[3] then return 0 end
redis.call('ZADD', P .. 'leases', now + tonumber(ARGV[4]), name)
return 1
