-- Claim a shard. ARGV: now, name, worker, lease in ms, delivery (unique to a delivery of the message, so that a claim whose
-- reply was lost can be repeated). Returns {token, place}, or nothing if it is done, dropped, or claimed by another worker.
local name, delivery = ARGV[2], ARGV[5]
local state, by = unpack(redis.call('HMGET', shard(name), 'state', 'delivery'))
local place = redis.call('GET', P .. 'place')
if not place then return false end
if state == 'held' and by == delivery then
  return {redis.call('HGET', shard(name), 'token'), place}
end
if state ~= 'waiting' then return false end
local token = redis.call('INCR', P .. 'token')
redis.call('HSET', shard(name), 'state', 'held', 'token', token, 'worker', ARGV[3], 'delivery', delivery)
redis.call('HINCRBY', shard(name), 'tries', 1)
redis.call('ZREM', P .. 'sent', name)
redis.call('LREM', P .. 'waiting', 0, name)
redis.call('ZADD', P .. 'leases', now + tonumber(ARGV[4]), name)
return {tostring(token), place}
