-- Drop shards. ARGV: now, names. Returns the number of remaining shards.
for i = 2, #ARGV do
  local name = ARGV[i]
  redis.call('DEL', shard(name))
  redis.call('SREM', P .. 'shards', name)
  redis.call('ZREM', P .. 'leases', name)
  redis.call('ZREM', P .. 'sent', name)
  redis.call('LREM', P .. 'waiting', 0, name)
end
local left = redis.call('SCARD', P .. 'shards')
if left == 0 then
  redis.call('DEL', P .. 'place', P .. 'token')
end
return left
