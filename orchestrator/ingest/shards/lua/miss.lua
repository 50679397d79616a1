-- Record a failed try. ARGV: now, name, token, error, 1 if the worker lacks a model or the index and 0 if the shard is at
-- fault, maximum tries of that kind. The shard is requeued, unless that was the last try.
local name, why, lacking, most = ARGV[2], ARGV[4], ARGV[5], tonumber(ARGV[6])
local state, token = unpack(redis.call('HMGET', shard(name), 'state', 'token'))
if state ~= 'held' or token ~= ARGV[3] then return 0 end
local counted = redis.call('HINCRBY', shard(name), lacking == '1' and 'returns' or 'misses', 1)
if counted >= most then
  fail(name, why, lacking)
else
  queue(name)
end
return 1
