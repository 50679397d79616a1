-- Library of all scripts of the job store. It follows the library of money (posology/budget/ledger/lua/_money.lua), which
-- defines P and now. ALLOWED and OVER (posology.types.jobs), BUCKETS, MESSAGES, FAILURES and DUE are
-- written in front of this file.
local function key(id, part)
  return P .. 'job:' .. id .. (part and (':' .. part) or '')
end

local function get(id, field)
  return redis.call('HGET', key(id), field) or nil
end

-- Member of a batch in the list of its tenant's batches, ordered by time; false if there is no such batch.
local function place(batch)
  local created = redis.call('HGET', P .. 'batch:' .. batch, 'created')
  return created and string.format('%013.0f-%s', tonumber(created), batch)
end

-- Units that were sent to the broker and are not claimed yet, by queue.
local function unclaimed(name)
  return P .. 'unclaimed:' .. (name == 'answer' and 'jobs' or 'calls')
end

-- Adds an event to a job's stream, which is bounded: a job with thousands of calls must not fill the store. HAPPENED
-- collects the events for callers that do not know which jobs a script changes.
local HAPPENED = {}
local function event(id, kind, data)
  HAPPENED[#HAPPENED + 1] = {job = id, kind = kind, data = data}
  redis.call('XADD', key(id, 'events'), 'MAXLEN', '~', 2000, '*',
    'type', kind, 'at', string.format('%d', now), 'data', cjson.encode(data))
end

local function set_state(id, new)
  local old = get(id, 'state')
  if old == new then return end
  if not ALLOWED[old][new] then
    error('a job cannot go from ' .. old .. ' to ' .. new)
  end
  redis.call('HSET', key(id), 'state', new)
  redis.call('ZREM', P .. 'state:' .. old, id)
  redis.call('ZADD', P .. 'state:' .. new, 0, id)
  local batch = get(id, 'batch')
  if batch then
    redis.call('HINCRBY', P .. 'batch:' .. batch, 'state:' .. old, -1)
    redis.call('HINCRBY', P .. 'batch:' .. batch, 'state:' .. new, 1)
  end
  event(id, 'state', {state = new})
end

-- Units: the pieces of a job's work, 'answer', 'extract:0' … and 'reduce'. A unit is waiting (sent to the
-- broker, or about to be), running (a worker holds a lease on it) or done.
local function unit(id, name)
  local raw = redis.call('HGET', key(id, 'units'), name)
  return raw and cjson.decode(raw) or nil
end

local function put_unit(id, name, value)
  redis.call('HSET', key(id, 'units'), name, cjson.encode(value))
end

local function member(id, name)
  return id .. '|' .. name
end

local function split(m)
  local at = string.find(m, '|', 1, true)
  return string.sub(m, 1, at - 1), string.sub(m, at + 1)
end

-- Sends a unit to the broker; the sweep sends it again if it is not claimed.
local function dispatch(id, name, u)
  u.s = 'waiting'
  put_unit(id, name, u)
  redis.call('ZREM', P .. 'leases', member(id, name))
  redis.call('ZADD', unclaimed(name), now, member(id, name))
end

-- Labels of an attempt in the metrics.
local function labels(entry, outcome)
  return '|' .. entry.stage .. '|' .. label(entry.model, outcome == 'ok')
end

-- Closes open attempts as lost, those of one unit's holder or (without a name) all of the job: their process is gone, and
-- their billing status is unknown.
local function lose_attempts(id, name, token)
  local open = redis.call('SMEMBERS', key(id, 'open'))
  for _, attempt in ipairs(open) do
    local entry = cjson.decode(redis.call('HGET', key(id, 'calls'), attempt))
    if name == nil or (entry.unit == name and entry.token <= token) then
      entry.outcome = 'lost'
      entry.labels = labels(entry, 'lost')
      entry.latency = (now / 1000) - entry.started
      redis.call('HSET', key(id, 'calls'), attempt, cjson.encode(entry))
      redis.call('SREM', key(id, 'open'), attempt)
      redis.call('HINCRBY', key(id), 'unknown_costs', 1)
      redis.call('HINCRBY', P .. 'metrics', 'attempts' .. entry.labels .. '|lost', 1)
      local batch = get(id, 'batch')
      if batch then redis.call('HINCRBY', P .. 'batch:' .. batch, 'unknown_costs', 1) end
      close(attempt, 'lose', 'lost', nil, 0, 0, cjson.encode(entry))
      event(id, 'call', {stage = entry.stage, call = entry.call, attempt = entry.attempt, outcome = 'lost'})
    end
  end
end

-- Calls of a job for a provider's batch, by content (workers/engine/lane): wanted, sent (a: the attempt) or failed (e: the
-- reason, JSON). us: units that wait for it, u: the last of them, n: tries so far, x: maximum tries, c: number of the call,
-- t: time of sending.
-- PUT_OFF: those wanted calls that have waited for others before, and were put off.
local WANTED, SENT, PUT_OFF = P .. 'lane:wanted', P .. 'lane:batches', P .. 'lane:put_off'

local function lane_call(id, k)
  local raw = redis.call('HGET', key(id, 'lane'), k)
  return raw and cjson.decode(raw) or nil
end

local function put_lane_call(id, k, c)
  redis.call('HSET', key(id, 'lane'), k, cjson.encode(c))
end

local function count_lane(id, what, n)
  local batch = n ~= 0 and get(id, 'batch')
  if batch then redis.call('HINCRBY', P .. 'batch:' .. batch, 'lane_' .. what, n) end
end

local function want(id, k)
  count_lane(id, 'wanted', redis.call('ZADD', WANTED, 'NX', now, id .. '|' .. k))
end

-- Lets a wanted call wait until a time, for nothing else.
local function put_off(m, at)
  if redis.call('ZADD', WANTED, 'XX', 'CH', at, m) == 1 then redis.call('SADD', PUT_OFF, m) end
  redis.call('PEXPIRE', PUT_OFF, at - now + 3600000)
end

local function unwant(id, k)
  count_lane(id, 'wanted', -redis.call('ZREM', WANTED, id .. '|' .. k))
end

-- Sends no calls of the tenant in batches for some ms; 0 ends that.
local function hold(ms)
  if ms > 0 then redis.call('SET', P .. 'lane:hold', whole(now + ms), 'PX', ms) else redis.call('DEL', P .. 'lane:hold') end
end

local function forget_lane_call(id, k)
  redis.call('HDEL', key(id, 'lane'), k)
  redis.call('HDEL', key(id, 'lane:lines'), k)
  unwant(id, k)
end

-- Returns the units that wait for a call of the lane.
local function waiting_for(c)
  return c.us or {c.u}
end

-- Lets take.lua send a unit again, unless a call that it waits for is outstanding.
local function wake(id, name)
  local u = unit(id, name)
  if not u or not u.lane or u.s ~= 'waiting' then return end
  for _, raw in ipairs(redis.call('HVALS', key(id, 'lane'))) do
    local c = cjson.decode(raw)
    for _, one in ipairs(waiting_for(c)) do
      if one == name and not c.e then return end
    end
  end
  u.lane = nil
  put_unit(id, name, u)
  redis.call('ZADD', P .. 'parked', now, member(id, name))
end

-- Wakes every unit that waits for a call.
local function wake_all(id, c)
  for _, one in ipairs(waiting_for(c)) do wake(id, one) end
end

-- Marks a unit as done, and releases it. Open attempts of its holder are closed as lost: their entries could not be written,
-- or a defect prevented them. A report that comes later corrects the charge.
local function unit_done(id, name, u)
  if u.s == 'running' then lose_attempts(id, name, u.t) end
  u.s = 'done'
  put_unit(id, name, u)
  redis.call('ZREM', P .. 'leases', member(id, name))
  redis.call('ZREM', unclaimed(name), member(id, name))
end

-- Takes back the loss of an attempt that was reported late.
local function forget_loss(id, entry)
  redis.call('HINCRBY', key(id), 'unknown_costs', -1)
  redis.call('HINCRBY', P .. 'metrics', 'attempts' .. entry.labels .. '|lost', -1)
  local batch = get(id, 'batch')
  if batch then redis.call('HINCRBY', P .. 'batch:' .. batch, 'unknown_costs', -1) end
end

-- Storage. The bytes of a tenant's records are counted until the records are deleted.
local STORED = P .. 'stored'

local function store(name, field, bytes)
  local grown = bytes - tonumber(redis.call('HGET', name, field) or 0)
  redis.call('HSET', name, field, bytes)
  if grown ~= 0 and redis.call('INCRBY', STORED, whole(grown)) <= 0 then redis.call('DEL', STORED) end
end

-- Counts the bytes of a job's record and of its other keys.
local function weigh(id)
  local bytes = 0
  for _, name in ipairs({key(id), key(id, 'units'), key(id, 'calls'), key(id, 'memo'), key(id, 'events'),
    key(id, 'lane'), key(id, 'lane:lines')}) do
    -- all fields: a few would rarely hold the largest, the result
    bytes = bytes + (redis.call('MEMORY', 'USAGE', name, 'SAMPLES', 0) or 0)
  end
  store(key(id), 'bytes', bytes)
end

-- Returns nothing if a submission has room, else {'full', limit, its value, present use, requested amount, ms until there may
-- be room}. The tenant's own limits replace the general ones: maximum waiting jobs, and MiB of records.
local function full(jobs, bytes, queued, stored)
  local own = redis.call('HMGET', P .. 'tenant', 'queued', 'stored')
  queued, stored = tonumber(own[1] or queued), tonumber(own[2] or stored) * 1048576
  local waiting, occupied = redis.call('ZCARD', P .. 'state:queued'), tonumber(redis.call('GET', STORED) or 0)
  if waiting + jobs > queued then
    return {'full', 'queued', whole(queued), waiting, jobs, 30000}
  end
  if occupied + bytes > stored then
    local next = redis.call('ZRANGE', P .. 'retention', 0, 0, 'WITHSCORES')[2]
    local after = next and math.max(1000, tonumber(next) - now) or 3600000
    return {'full', 'stored', whole(stored), occupied, bytes, whole(math.min(after, 3600000))}
  end
end

-- Webhooks. WEBHOOKS has the tenant's endpoints by id (JSON). Each endpoint has its figures, its failures, and a list of
-- messages for each subject (a job, a batch, a budget), in order. The first message of a list is tried at its time in
-- 'due', and waits since its time in 'since'.
local WEBHOOKS = P .. 'webhooks'

local function webhook(endpoint, part)
  return P .. 'webhook:' .. endpoint .. (part and (':' .. part) or '')
end

-- Sets the time at which senders look at the endpoint next: DUE lists the endpoints of all tenants with messages, by time. A
-- cluster may keep DUE on another node and refuse this; senders find such endpoints when they look at all of them
-- (workers/engine/webhooks.py).
local function plan(endpoint)
  local first = redis.call('ZRANGE', webhook(endpoint, 'due'), 0, 0, 'WITHSCORES')[2]
  local name = string.match(P, '{(.+)}') .. '|' .. endpoint
  local told = redis.call('HMGET', webhook(endpoint), 'hold', 'paused')
  if not first or told[2] then
    redis.pcall('ZREM', DUE, name)
    return
  end
  local at = math.max(tonumber(first), tonumber(told[1] or 0))
  redis.pcall('ZADD', DUE, at, name)
  return at
end

-- Gives up a message: it is kept among the failures, at most FAILURES of them.
local function bury(endpoint, subject, message, why)
  local kept = {subject = subject, failed = whole(now)}
  for name, value in pairs(message) do kept[name] = value end
  kept.error = why
  redis.call('LPUSH', webhook(endpoint, 'failed'), cjson.encode(kept))
  redis.call('LTRIM', webhook(endpoint, 'failed'), 0, FAILURES - 1)
  redis.call('HINCRBY', webhook(endpoint), 'failed', 1)
  redis.call('HINCRBY', P .. 'metrics', 'webhooks|given_up', 1)
end

local function post(endpoint, subject, message)
  if tonumber(redis.call('HGET', webhook(endpoint), 'queued') or 0) >= MESSAGES then
    return bury(endpoint, subject, message, 'the queue of the endpoint is full')
  end
  redis.call('HINCRBY', webhook(endpoint), 'queued', 1)
  if redis.call('RPUSH', webhook(endpoint, 'about:' .. subject), cjson.encode(message)) == 1 then
    redis.call('ZADD', webhook(endpoint, 'due'), now, subject)
    redis.call('ZADD', webhook(endpoint, 'since'), message.since or message.at, subject)
    plan(endpoint)
  end
end

-- Removes the first message about a subject; the next one is due.
local function take_off(endpoint, subject)
  redis.call('LPOP', webhook(endpoint, 'about:' .. subject))
  redis.call('HINCRBY', webhook(endpoint), 'queued', -1)
  local raw = redis.call('LINDEX', webhook(endpoint, 'about:' .. subject), 0)
  if raw then
    local following = cjson.decode(raw)
    redis.call('ZADD', webhook(endpoint, 'due'), now, subject)
    redis.call('ZADD', webhook(endpoint, 'since'), following.since or following.at, subject)
  else
    redis.call('ZREM', webhook(endpoint, 'due'), subject)
    redis.call('ZREM', webhook(endpoint, 'since'), subject)
  end
end

-- Makes a message with an id, which is the same in all tries.
local function message(kind, subject, data)
  local n = redis.call('INCR', WEBHOOKS .. ':made')
  local id = 'msg_' .. string.sub(redis.sha1hex(P .. subject .. '|' .. whole(now) .. '|' .. n), 1, 28)
  return {id = id, type = kind, at = whole(now), data = data, tries = 0}
end

-- Queues a message for each endpoint of the tenant that wants this kind. `data` returns its content. Without endpoints this
-- costs one read.
local function announce(kind, subject, data)
  local made
  for _, raw in ipairs(redis.call('HVALS', WEBHOOKS)) do
    local one = cjson.decode(raw)
    for _, wanted in ipairs(one.disabled and {} or one.events) do
      if wanted == kind then
        made = made or message(kind, subject, data())
        post(one.id, subject, made)
      end
    end
  end
end

-- Announces the end of a batch, once all of its rows have ended. A cancelled batch gets no more rows.
local function announce_batch(batch)
  local name = P .. 'batch:' .. batch
  local told = redis.call('HMGET', name, 'total', 'rejected', 'cancelled', 'known_nano', 'unknown_costs')
  if not told[1] then return end
  local states, rows, ended = {}, 0, 0
  for state in pairs(ALLOWED) do
    local n = tonumber(redis.call('HGET', name, 'state:' .. state) or 0)
    rows, ended = rows + n, ended + (OVER[state] and n or 0)
    if n > 0 then states[state] = n end
  end
  if ended < rows or (not told[3] and ended + told[2] < tonumber(told[1])) then return end
  announce('batch.ended', batch, function()
    return {batch = batch, cancelled = told[3] and true or false, total = tonumber(told[1]), rejected = tonumber(told[2]),
      states = next(states) and states or nil, known_nano = told[4], unknown_costs = tonumber(told[5])}
  end)
end

-- Announces the end of a job. `status`: of the answer; nil if there is none.
local function announce_end(id, state, status)
  if redis.call('EXISTS', WEBHOOKS) == 0 then return end
  local batch = get(id, 'batch')
  announce(batch and 'row.ended' or 'job.ended', id, function()
    local told = redis.call('HMGET', key(id), 'row', 'known_nano', 'unknown_costs', 'spent_nano', 'error')
    return {job = id, batch = batch, row = told[1] and tonumber(told[1]) or nil, state = state, status = status,
      known_nano = told[2], unknown_costs = tonumber(told[3]), charged_nano = told[4] or '0',
      error = told[5] and cjson.decode(told[5]).type or nil}
  end)
  if batch then announce_batch(batch) end
end

-- Ends a job. Data for another try are kept until the record expires. Running units keep their leases: their open calls
-- are settled, or lost when the lease ends.
local function finalize(id, state, field, payload, status)
  local units = redis.call('HGETALL', key(id, 'units'))
  for i = 1, #units, 2 do
    local u = cjson.decode(units[i + 1])
    if u.s == 'waiting' then unit_done(id, units[i], u) end
  end
  redis.call('ZREM', P .. 'deadlines', id)
  redis.call('HSET', key(id), 'ended', now)
  if field then redis.call('HSET', key(id), field, payload) end
  redis.call('DEL', key(id, 'context'), key(id, 'extractions'))
  if state == 'succeeded' then
    redis.call('DEL', key(id, 'memo'), key(id, 'unusable'))
  end
  -- calls in a provider's batch are settled when it ends
  local calls = redis.call('HGETALL', key(id, 'lane'))
  for i = 1, #calls, 2 do
    if not cjson.decode(calls[i + 1]).a then forget_lane_call(id, calls[i]) end
  end
  redis.call('DEL', key(id, 'lane:lines'))
  if state == 'failed' or state == 'expired' then
    redis.call('ZADD', P .. 'dead', now, id)
  end
  set_state(id, state)
  weigh(id)
  local ends = now + tonumber(get(id, 'retention'))
  redis.call('ZADD', P .. 'retention', ends, id)
  announce_end(id, state, status)
end

-- Whether a worker holds any unit of the job.
local function running(id)
  local units = redis.call('HGETALL', key(id, 'units'))
  for i = 2, #units, 2 do
    if cjson.decode(units[i]).s == 'running' then return true end
  end
  return false
end

-- Ends a cancelled job, once its calls in flight are settled.
local function settle_cancel(id)
  if get(id, 'state') == 'cancelling' and not running(id) then
    finalize(id, 'cancelled')
  end
end

-- Returns the unit if the caller still holds it, else nil and the reason. The unit of a job that has ended is released.
local function held(id, name, token)
  local state = get(id, 'state')
  if not state then return nil, 'gone' end
  local u = unit(id, name)
  if not u or u.s ~= 'running' or u.t ~= token then return nil, 'superseded' end
  if OVER[state] then
    unit_done(id, name, u)
    return nil, 'over'
  end
  return u
end

-- Takes the tickets of a requeued unit out of their queues: tickets behind them would wait for a unit that does not ask. A
-- ticket that asks again within two minutes gets the same place back; otherwise expensive calls, which need other calls to
-- end first, would never be made.
local function step_out(id, name)
  local own = member(id, name) .. '|'
  for _, q in ipairs({queue(), queue(id), P .. 'rates:queue'}) do
    for _, ticket in ipairs(redis.call('ZRANGE', q, 0, -1)) do
      if string.sub(ticket, 1, #own) == own then
        redis.call('HSET', q .. ':left', ticket, redis.call('ZSCORE', q, ticket))
        redis.call('PEXPIRE', q .. ':left', 120000)
        redis.call('ZREM', q, ticket)
        redis.call('HDEL', q .. ':seen', ticket)
      end
    end
  end
end
