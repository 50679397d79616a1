-- The writer wants a shard. ARGV: now, name, place of the index. Says its state; what has failed is tried anew.
local name = ARGV[2]
redis.call('SET', P .. 'place', ARGV[3])
redis.call('SADD', P .. 'shards', name)
local state = redis.call('HGET', shard(name), 'state')
if not state or state == 'failed' then
  redis.call('DEL', shard(name))
  queue(name)
  state = 'waiting'
end
keep(name)
return state
