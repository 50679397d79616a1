-- Offer a shard. ARGV: now, name, address of the index. Returns its state; a failed shard is queued again.
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
