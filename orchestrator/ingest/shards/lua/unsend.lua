-- Requeue a shard that was sent and not claimed. ARGV: now, name.
local name = ARGV[2]
if redis.call('HGET', shard(name), 'state') ~= 'waiting' then return 0 end
queue(name)
return 1
