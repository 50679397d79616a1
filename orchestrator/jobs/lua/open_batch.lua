-- Creates a batch, or finds the one of that id. Its jobs count themselves in, see set_state.
-- ARGV: now, id, digest of the rows, how many there are, how many of them are rejected, ms after which
-- forget_batches looks at it
local name = P .. 'batch:' .. ARGV[2]
local known = redis.call('HGET', name, 'digest')
if known then
  return {known == ARGV[3] and 'existing' or 'conflict'}
end
redis.call('HSET', name, 'created', now, 'digest', ARGV[3], 'total', ARGV[4], 'rejected', ARGV[5],
  'known_nano', 0, 'unknown_costs', 0)
redis.call('ZADD', P .. 'batches', now + tonumber(ARGV[6]), ARGV[2])
return {'created'}
