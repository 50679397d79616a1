-- Creates a batch, or finds the one of that id. Its jobs are counted by set_state.
-- It is deleted with the last of its jobs, but not before its time in 'batches': its submission may be in progress, or no
-- row may have become a job.
-- ARGV: now, id, digest of the rows, number of rows, number of rejected rows, minimum ms for which it is kept, maximum ms of
-- a submission, bytes of its own records, bytes of the requests, and the limits of tenants without their own: waiting jobs,
-- and MiB of records
local name = P .. 'batch:' .. ARGV[2]
local known = redis.call('HGET', name, 'digest')
if known then
  if known ~= ARGV[3] then return {'conflict'} end
  redis.call('ZADD', P .. 'batches', 'GT', now + tonumber(ARGV[7]), ARGV[2])
  redis.call('ZADD', P .. 'batches:listed', 0, place(ARGV[2]))  -- earlier versions did not keep this list
  return {redis.call('HEXISTS', name, 'cancelled') == 1 and 'cancelled' or 'existing'}
end
local jobs, beside = tonumber(ARGV[4]) - tonumber(ARGV[5]), tonumber(ARGV[8])
local no_room = full(jobs, beside + tonumber(ARGV[9]), ARGV[10], ARGV[11])
if no_room then return no_room end
redis.call('HSET', name, 'created', now, 'digest', ARGV[3], 'total', ARGV[4], 'rejected', ARGV[5],
  'known_nano', 0, 'unknown_costs', 0, 'kept', 0)
redis.call('ZADD', P .. 'batches', now + math.max(tonumber(ARGV[6]), tonumber(ARGV[7])), ARGV[2])
store(name, 'bytes', beside)
redis.call('ZADD', P .. 'batches:listed', 0, place(ARGV[2]))
announce_batch(ARGV[2])  -- perhaps no row has become a job
return {'created'}
