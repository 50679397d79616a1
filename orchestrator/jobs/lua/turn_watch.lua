-- Pauses, resumes or ends a watch, and returns its state before; '': there is none. Of those that have ended, the oldest are
-- forgotten. ARGV: now, id, state (active, paused, ended), ms for which an ended one is kept, and their maximum number
local name, all, due = P .. 'watch:' .. ARGV[2], P .. 'watches', P .. 'watches:due'
local old = redis.call('HGET', name, 'state')
if not old then return '' end
if old == 'ended' or old == ARGV[3] then return old end
redis.call('HSET', name, 'state', ARGV[3])
redis.call('HINCRBY', name, 'step', 1)
if ARGV[3] == 'active' then
  local begun = redis.call('HEXISTS', name, 'job') + redis.call('HEXISTS', name, 'fetch') > 0
  redis.call('ZADD', due, begun and now or redis.call('HGET', name, 'next'), ARGV[2])
  return old
end
redis.call('ZREM', due, ARGV[2])
if ARGV[3] == 'ended' then
  redis.call('ZADD', all, now + tonumber(ARGV[4]), ARGV[2])
  if redis.call('ZCOUNT', all, '-inf', '(+inf') > tonumber(ARGV[5]) then
    local first = redis.call('ZPOPMIN', all)[1]
    redis.call('DEL', P .. 'watch:' .. first, P .. 'watch:' .. first .. ':changes')
  end
end
return old
