-- Retries a job that failed, expired or was cancelled. Paid replies are replayed, except unusable ones, which would fail the
-- job again.
-- ARGV: now, id, patience in ms, nonce of this retry
local id = ARGV[2]
local state = get(id, 'state')
if not state then return {'gone'} end
if get(id, 'retry') == ARGV[4] then return {'queued'} end  -- the reply to it was lost
if not ALLOWED[state]['queued'] then return {'refused', state} end
for _, k in ipairs(redis.call('SMEMBERS', key(id, 'unusable'))) do
  redis.call('HDEL', key(id, 'memo'), k)
end
lose_attempts(id)
redis.call('DEL', key(id, 'unusable'), key(id, 'units'), key(id, 'context'), key(id, 'extractions'))
redis.call('HDEL', key(id), 'error', 'result', 'ended', 'started', 'decision', 'draft', 'partitions', 'read',
  'unread', 'calls_planned')
-- tokens up to this one belong to earlier tries
redis.call('HSET', key(id), 'retry', ARGV[4], 'losses', 0, 'deadline', now + tonumber(ARGV[3]), 'tried', get(id, 'token'))
redis.call('ZREM', P .. 'dead', id)
redis.call('ZREM', P .. 'retention', id)
redis.call('ZADD', P .. 'deadlines', now + tonumber(ARGV[3]), id)
put_unit(id, 'answer', {s = 'waiting', t = 0})
set_state(id, 'queued')
redis.call('RPUSH', P .. 'waiting', id)
return {'queued'}
