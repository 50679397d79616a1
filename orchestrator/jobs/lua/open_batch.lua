-- Creates a batch, or finds the one of that id. Its jobs count themselves in, see set_state.
-- It is forgotten with the last of its jobs, but not before the time in 'batches': its submission may be under way,
-- or no row may have made a job.
-- ARGV: now, id, digest of the rows, how many there are, how many of them are rejected, ms for which it is kept in any
-- case, ms that a submission may take
local name = P .. 'batch:' .. ARGV[2]
local known = redis.call('HGET', name, 'digest')
if known then
  if known ~= ARGV[3] then return {'conflict'} end
  redis.call('ZADD', P .. 'batches', 'GT', now + tonumber(ARGV[7]), ARGV[2])
  return {'existing'}
end
redis.call('HSET', name, 'created', now, 'digest', ARGV[3], 'total', ARGV[4], 'rejected', ARGV[5],
  'known_nano', 0, 'unknown_costs', 0, 'kept', 0)
redis.call('ZADD', P .. 'batches', now + math.max(tonumber(ARGV[6]), tonumber(ARGV[7])), ARGV[2])
return {'created'}
