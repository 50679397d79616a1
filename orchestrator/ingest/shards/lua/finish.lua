-- The rows of a shard lie beside the index. ARGV: now, name. Whoever says so: the rows are the same, and a worker whose lease
-- has ended was only slow.
local name = ARGV[2]
if redis.call('EXISTS', shard(name)) == 0 then return 0 end
redis.call('HSET', shard(name), 'state', 'done')
redis.call('HDEL', shard(name), 'error', 'lacking')
redis.call('ZREM', P .. 'leases', name)
redis.call('ZREM', P .. 'sent', name)
redis.call('LREM', P .. 'waiting', 0, name)
return 1
