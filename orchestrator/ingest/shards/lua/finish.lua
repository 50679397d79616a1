-- Mark a shard as done. ARGV: now, name. The claim is not checked: any worker writes the same rows, also one whose lease
-- has ended.
local name = ARGV[2]
if redis.call('EXISTS', shard(name)) == 0 then return 0 end
redis.call('HSET', shard(name), 'state', 'done')
redis.call('HDEL', shard(name), 'error', 'lacking')
redis.call('ZREM', P .. 'leases', name)
redis.call('ZREM', P .. 'sent', name)
redis.call('LREM', P .. 'waiting', 0, name)
return 1
