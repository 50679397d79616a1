-- Finds units without a live worker. ARGV: now, maximum losses of a unit, error (JSON) of a job with a unit that has more,
-- error (JSON) of a job after its deadline, the times before which unclaimed units of the jobs' and of the calls' queue must
-- have been lost by the broker, '1' if ended leases count and '0' if not, a lease in ms, and '1' if the clock was put back
-- lately, else '0'.
-- Returns the units to send again, and the events of jobs (JSON).
local MINUTE = 60000
local LIMIT = 500  -- a sweep is one script, and a script blocks Redis
local found = {}

local function again(id, name, u)
  dispatch(id, name, u)
  found[#found + 1] = member(id, name)
end

-- Corrects times that are too late after the clock was put back: each becomes the latest time that could be set now.
local function bring_back(name, most)
  for _, m in ipairs(redis.call('ZRANGEBYSCORE', name, '(' .. whole(now + most), '+inf', 'LIMIT', 0, LIMIT)) do
    redis.call('ZADD', name, now + most, m)
  end
end

if ARGV[9] == '1' then
  local lease = tonumber(ARGV[8])
  for _, name in ipairs({P .. 'leases', P .. 'parked', SENT}) do bring_back(name, lease) end
  for _, name in ipairs({WANTED, unclaimed('answer'), unclaimed('extract')}) do bring_back(name, 0) end
  for _, name in ipairs({P .. 'parked:until', P .. 'lane:hold'}) do
    if tonumber(redis.call('GET', name) or 0) > now + MINUTE then redis.call('DEL', name) end
  end
end

local ended = ARGV[7] == '1' and now or '-inf'
for _, m in ipairs(redis.call('ZRANGEBYSCORE', P .. 'leases', '-inf', ended, 'LIMIT', 0, LIMIT)) do
  local id, name = split(m)
  local state, u = get(id, 'state'), unit(id, name)
  if not state or not u or u.s ~= 'running' then
    redis.call('ZREM', P .. 'leases', m)
  else
    lose_attempts(id, name, u.t)
    event(id, 'lost', {unit = name, worker = u.w})
    redis.call('HINCRBY', key(id), 'losses', 1)
    u.n = (u.n or 0) + 1
    if OVER[state] then
      unit_done(id, name, u)
    elseif state == 'cancelling' then
      unit_done(id, name, u)
      settle_cancel(id)
    elseif u.n > tonumber(ARGV[2]) then
      unit_done(id, name, u)
      finalize(id, 'failed', 'error', ARGV[3])
    else
      again(id, name, u)
    end
  end
end

for _, id in ipairs(redis.call('ZRANGEBYSCORE', P .. 'deadlines', '-inf', now, 'LIMIT', 0, LIMIT)) do
  local state = get(id, 'state')
  if not state or OVER[state] then
    redis.call('ZREM', P .. 'deadlines', id)
  elseif running(id) and now < tonumber(get(id, 'deadline')) + 2 * tonumber(ARGV[8]) then
    -- a worker that holds a unit knows the deadline itself, unless it hangs
  elseif state == 'cancelling' then
    finalize(id, 'cancelled')
  else
    finalize(id, 'expired', 'error', ARGV[4])
  end
end

for queue, cutoff in pairs({jobs = ARGV[5], calls = ARGV[6]}) do
  local lost = redis.call('ZRANGEBYSCORE', P .. 'unclaimed:' .. queue, '-inf', '(' .. cutoff, 'LIMIT', 0, LIMIT)
  for _, m in ipairs(lost) do
    local id, name = split(m)
    local u = unit(id, name)
    if u and u.s == 'waiting' then again(id, name, u)
    else redis.call('ZREM', P .. 'unclaimed:' .. queue, m) end
  end
end

lose_expired()  -- reservations of runs that are not jobs

-- Deletes a batch. The time that this takes grows with its rows, so memory is freed in the background (UNLINK).
local function forget_batch(id)
  local name, listed = P .. 'batch:' .. id, place(id)
  store(name, 'bytes', 0)
  if listed then redis.call('ZREM', P .. 'batches:listed', listed) end
  redis.call('UNLINK', name, name .. ':jobs', name .. ':rejected', name .. ':ids')
end

for _, id in ipairs(redis.call('ZRANGEBYSCORE', P .. 'retention', '-inf', now, 'LIMIT', 0, LIMIT)) do
  lose_attempts(id)
  local state, idem, batch = get(id, 'state'), get(id, 'idem'), get(id, 'batch')
  if idem and idem ~= '' then redis.call('DEL', P .. 'idem:' .. idem) end
  if state then redis.call('ZREM', P .. 'state:' .. state, id) end
  redis.call('ZREM', P .. 'retention', id)
  redis.call('ZREM', P .. 'jobs', id)
  redis.call('ZREM', P .. 'dead', id)
  store(key(id), 'bytes', 0)
  redis.call('DEL', key(id), key(id, 'units'), key(id, 'context'), key(id, 'extractions'), key(id, 'calls'),
    key(id, 'open'), key(id, 'memo'), key(id, 'unusable'), key(id, 'events'), key(id, 'lane'), key(id, 'lane:lines'))
  if batch and redis.call('HINCRBY', P .. 'batch:' .. batch, 'kept', -1) <= 0
    and not redis.call('ZSCORE', P .. 'batches', batch) then
    forget_batch(batch)
  end
end

-- batches that may be deleted from now on: at once, or with the last of their jobs
for _, id in ipairs(redis.call('ZRANGEBYSCORE', P .. 'batches', '-inf', now, 'LIMIT', 0, LIMIT)) do
  redis.call('ZREM', P .. 'batches', id)
  if tonumber(redis.call('HGET', P .. 'batch:' .. id, 'kept') or 0) <= 0 then forget_batch(id) end
end

-- a unit in found may have ended since: by another unit's losses, or the deadline
local sent = {}
for _, m in ipairs(found) do
  local u = unit(split(m))
  if u and u.s == 'waiting' then sent[#sent + 1] = m end
end
return {sent, #HAPPENED > 0 and cjson.encode(HAPPENED) or '[]'}
