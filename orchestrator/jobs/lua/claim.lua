-- Claims the unit of a message for a worker.
-- ARGV: now, id, unit, delivery (unique to this delivery), worker, lease in ms
local id, name, delivery, worker = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local lease = tonumber(ARGV[6])

-- Returns the data that the work needs, in the same step: token, milliseconds until the deadline, milliseconds from
-- submission to deadline, request, '1' if there is nothing to replay, number of requeues, batch, and the unit's input.
local function claimed(u, token, fresh)
  local left = tonumber(get(id, 'deadline')) - now
  local said = {'claimed', token, left, get(id, 'patience'), get(id, 'request'),
    fresh and '1' or '0', u.r or 0, get(id, 'batch') or ''}
  if name == 'reduce' then
    said[9], said[10] = get(id, 'decision'), get(id, 'draft')
    said[11] = now - tonumber(get(id, 'started'))
  elseif name == 'answer' then
    said[9] = get(id, 'decision') or ''
  else
    said[9] = redis.call('HGET', key(id, 'context'), string.match(name, '^extract:(%d+)$'))
  end
  return said
end

local state = get(id, 'state')
if not state then return {'gone'} end
if OVER[state] then return {'over', state} end
local u = unit(id, name)
if not u or u.s == 'done' then return {'done'} end
if state == 'cancelling' then
  if u.s == 'waiting' then unit_done(id, name, u) end
  settle_cancel(id)
  return {'over', get(id, 'state')}
end
if u.s == 'running' then
  if u.d == delivery then return claimed(u, u.t) end  -- this claim was made before, and its reply was lost
  return {'held'}  -- if its holder dies, the sweep sends the unit again
end
local token = redis.call('HINCRBY', key(id), 'token', 1)
redis.call('ZREM', unclaimed(name), member(id, name))
redis.call('ZADD', P .. 'leases', now + lease, member(id, name))
put_unit(id, name, {s = 'running', t = token, d = delivery, w = worker, n = u.n, r = u.r})
if name == 'answer' then
  redis.call('HINCRBY', key(id), 'runs', 1)
  redis.call('HSETNX', key(id), 'started', now)
  if state == 'queued' then set_state(id, 'running') end
end
-- a unit without an earlier claim, of a job without an earlier try, has no replies to replay
return claimed(u, token, u.t == 0 and not get(id, 'tried'))
