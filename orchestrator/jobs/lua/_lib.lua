-- What every script of the job store begins with, after the library of money (posology/budget/ledger/lua/_money.lua), which
-- says what P and now are. ALLOWED and OVER (posology.types.jobs), BUCKETS, MESSAGES, FAILURES and DUE are
-- written in front of this file.
local function key(id, part)
  return P .. 'job:' .. id .. (part and (':' .. part) or '')
end

local function get(id, field)
  return redis.call('HGET', key(id), field) or nil
end

-- A batch's place in the list of its tenant's batches, which is ordered by time; false where there is no such batch.
local function place(batch)
  local created = redis.call('HGET', P .. 'batch:' .. batch, 'created')
  return created and string.format('%013.0f-%s', tonumber(created), batch)
end

-- Units that were sent to the broker and are not claimed yet, by queue.
local function unclaimed(name)
  return P .. 'unclaimed:' .. (name == 'answer' and 'jobs' or 'calls')
end

-- An event of a job. The stream is bounded: a job with thousands of calls must not fill the store. What a script has to say
-- of jobs that its caller does not know is in HAPPENED.
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

-- Labels of an attempt's metrics.
local function labels(entry, outcome)
  return '|' .. entry.stage .. '|' .. label(entry.model, outcome == 'ok')
end

-- Attempts that were opened and not closed, of one unit's holder or (without a name) of all: the process that
-- made them is gone, and their billing status is unknown.
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

-- Calls of a job for a provider's batch, by content (workers/engine/lane): wanted, sent (a: its attempt) or failed (e: why,
-- JSON). u is the unit that waits for it, n its tries so far, x its tries at most, c its number, t when it was sent.
local WANTED, SENT = P .. 'lane:wanted', P .. 'lane:batches'

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

local function unwant(id, k)
  count_lane(id, 'wanted', -redis.call('ZREM', WANTED, id .. '|' .. k))
end

-- No call of the tenant goes into a batch for some ms, 0 for none.
local function hold(ms)
  if ms > 0 then redis.call('SET', P .. 'lane:hold', whole(now + ms), 'PX', ms) else redis.call('DEL', P .. 'lane:hold') end
end

local function forget_lane_call(id, k)
  redis.call('HDEL', key(id, 'lane'), k)
  redis.call('HDEL', key(id, 'lane:lines'), k)
  unwant(id, k)
end

-- Sends a unit again, by take.lua, once none of the calls that it waits for is outstanding.
local function wake(id, name)
  local u = unit(id, name)
  if not u or not u.lane or u.s ~= 'waiting' then return end
  for _, raw in ipairs(redis.call('HVALS', key(id, 'lane'))) do
    local c = cjson.decode(raw)
    if c.u == name and not c.e then return end
  end
  u.lane = nil
  put_unit(id, name, u)
  redis.call('ZADD', P .. 'parked', now, member(id, name))
end

-- Nobody holds the unit any more. What its holder left open, nobody is to tell of: its entry could not be made, or a
-- defect came before it. Where it is told of after all, that is put right.
local function unit_done(id, name, u)
  if u.s == 'running' then lose_attempts(id, name, u.t) end
  u.s = 'done'
  put_unit(id, name, u)
  redis.call('ZREM', P .. 'leases', member(id, name))
  redis.call('ZREM', unclaimed(name), member(id, name))
end

-- An attempt that counted as lost is reported after all.
local function forget_loss(id, entry)
  redis.call('HINCRBY', key(id), 'unknown_costs', -1)
  redis.call('HINCRBY', P .. 'metrics', 'attempts' .. entry.labels .. '|lost', -1)
  local batch = get(id, 'batch')
  if batch then redis.call('HINCRBY', P .. 'batch:' .. batch, 'unknown_costs', -1) end
end

-- Room. The bytes that records occupy are counted for the tenant, until the records are forgotten.
local STORED = P .. 'stored'

local function store(name, field, bytes)
  local grown = bytes - tonumber(redis.call('HGET', name, field) or 0)
  redis.call('HSET', name, field, bytes)
  if grown ~= 0 and redis.call('INCRBY', STORED, whole(grown)) <= 0 then redis.call('DEL', STORED) end
end

-- Weighs a job's record and all that stands beside it.
local function weigh(id)
  local bytes = 0
  for _, name in ipairs({key(id), key(id, 'units'), key(id, 'calls'), key(id, 'memo'), key(id, 'events'),
    key(id, 'lane'), key(id, 'lane:lines')}) do
    -- all fields: a few would rarely hold the largest, the result
    bytes = bytes + (redis.call('MEMORY', 'USAGE', name, 'SAMPLES', 0) or 0)
  end
  store(key(id), 'bytes', bytes)
end

-- Whether a submission has no room: {'full', limit, its value, the present use, what is asked for, ms until there may be
-- some}. The tenant's own limits come before those that hold for all: jobs that wait, and MiB that are occupied.
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

-- Webhooks. WEBHOOKS has the tenant's endpoints by id (JSON). Beside each stand what it is owed about one subject (a job, a
-- batch, a budget), in order: a list, whose first message is tried at its time in 'due' and waits
-- since its time in 'since'; its figures; and its failures.
local WEBHOOKS = P .. 'webhooks'

local function webhook(endpoint, part)
  return P .. 'webhook:' .. endpoint .. (part and (':' .. part) or '')
end

-- When senders look at the endpoint next: DUE has those of all tenants that are owed something, by time. A cluster may keep
-- it on another node and refuses it then; what is not in it is found by the look at all endpoints (workers/engine/webhooks.py).
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

-- A message is not delivered: it is kept among the failures, of which there are FAILURES at most.
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

-- The first message about a subject is over; the next is due.
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

-- A message with an id of its own, which every try at it has.
local function message(kind, subject, data)
  local n = redis.call('INCR', WEBHOOKS .. ':made')
  local id = 'msg_' .. string.sub(redis.sha1hex(P .. subject .. '|' .. whole(now) .. '|' .. n), 1, 28)
  return {id = id, type = kind, at = whole(now), data = data, tries = 0}
end

-- Tells the tenant's endpoints that want to know. Without endpoints that is one look; `data` makes what they are told.
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

-- The batch has ended if each of its rows has; no row of a cancelled one is submitted any more.
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

-- `status` is that of the answer, nil where there is none.
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

-- The end of a job. What is needed for another try is kept until the record expires. Units that still run keep
-- their leases: what they have sent is let settle, or lost when the lease ends.
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
  -- what is in a provider's batch comes back, and is settled then
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

-- A cancelled job ends when what was on its way has settled.
local function settle_cancel(id)
  if get(id, 'state') == 'cancelling' and not running(id) then
    finalize(id, 'cancelled')
  end
end

-- The unit if the caller still holds it; else nil and why not. A unit whose job is over is let go.
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

-- Nobody asks with the tickets of a unit that is handed back, and whoever stands behind one would wait for it. A call
-- that had come to its turn for money has the same place again when it asks within two minutes: else dear calls, for
-- which others have to end, would never be made.
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
