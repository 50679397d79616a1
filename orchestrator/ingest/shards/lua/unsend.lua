-- A worker that is to stop does not begin a shard that it was sent. ARGV: now, name.
local name = ARGV[2]
if redis.call('HGET', shard(name), 'state') ~= 'waiting' then return 0 end
queue(name)
return 1
