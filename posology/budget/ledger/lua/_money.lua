-- Library of all scripts that change money. docs/concepts/money.md lists the keys.
--
-- KEYS[1]: the tenant's prefix, e.g. "posology:{acme}:". All keys of a tenant share its hash tag and so
-- one slot of a cluster; scripts build them from the prefix. ARGV[1]: time in milliseconds, or 0 for
-- the server's clock. MODELS, OTHER, QUEUED and REMEMBERED are written in front of this file.
--
-- Amounts are whole nano-dollars. A Lua number is exact up to 2^53, that is nine million dollars, which
-- is the highest cap; in JSON they are strings, because cjson writes 14 digits.
local P = KEYS[1]
local now = tonumber(ARGV[1])
if now == 0 then
  local t = redis.call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end
local MONEY, OPEN, LOST = P .. 'money', P .. 'money:open', P .. 'money:lost'
local LEDGER, LEASES = P .. 'ledger', P .. 'money:leases'
-- reservations of calls that are in a provider's batch
local BATCHED = P .. 'money:batched'
local DAY = 86400000

local function whole(n)
  return string.format('%.0f', n + 0)  -- adding 0 removes the sign of -0
end

-- The UTC date of a time: Hinnant's "civil from days".
local function date(ms)
  local z = math.floor(ms / DAY) + 719468
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local d = doy - math.floor((153 * mp + 2) / 5) + 1
  local m = mp < 10 and mp + 3 or mp - 9
  local y = yoe + era * 400 + (m <= 2 and 1 or 0)
  return string.format('%04d-%02d-%02d', y, m, d)
end

-- Returns the end of the current window of a scope, ms.
local function resets(scope)
  if scope == 'day' then return whole((math.floor(now / DAY) + 1) * DAY) end
  if scope ~= 'month' then return '' end
  local month, t = string.sub(date(now), 1, 7), math.floor(now / DAY) * DAY
  repeat t = t + DAY until string.sub(date(t), 1, 7) ~= month
  return whole(t)
end

-- Key of the counters of one job, or of a run without a job. A job's record may be deleted while its call is in flight.
local function purse(job)
  return P .. (string.sub(job, 1, 4) == 'job_' and 'job:' or 'run:') .. job
end

-- Adds to the reserved and spent amounts in every scope of a reservation.
local function count(o, reserved, spent)
  for _, window in ipairs({'day:' .. o.day, 'month:' .. string.sub(o.day, 1, 7), 'total'}) do
    if reserved ~= 0 then redis.call('HINCRBY', MONEY, 'reserved:' .. window, whole(reserved)) end
    if spent ~= 0 then redis.call('HINCRBY', MONEY, 'spent:' .. window, whole(spent)) end
  end
  local name = purse(o.job)
  if redis.call('EXISTS', name) == 1 then
    if reserved ~= 0 then redis.call('HINCRBY', name, 'reserved_nano', whole(reserved)) end
    if spent ~= 0 then redis.call('HINCRBY', name, 'spent_nano', whole(spent)) end
  end
end

-- Returns the name of a model in the figures. Callers may write any name: only a model that has replied gets figures of its
-- own, and at most MODELS of them, which stay, since no counter may fall.
local function label(model, replied)
  local known = P .. 'money:models'
  if redis.call('SISMEMBER', known, model) == 1 then return model end
  if replied and redis.call('SCARD', known) < MODELS then
    redis.call('SADD', known, model)
    return model
  end
  return OTHER
end

-- Returns the service tier at which an attempt is billed, or in which it was sent if no reply named one.
local function tier(entry)
  local attempt = cjson.decode(entry)
  return type(attempt.served) == 'string' and attempt.served or attempt.tier
end

-- Labels of figures: |STAGE|STRATEGY|TIER|MODEL. A reservation or an entry of an earlier version has no tier.
local function labels(o)
  return '|' .. o.stage .. '|' .. o.strategy .. '|' .. (o.tier and o.tier .. '|' or '') .. o.label
end

-- Adds to the figures of a day by stage, strategy, tier and model.
local function figure(o, what, n)
  if n ~= 0 then redis.call('HINCRBY', P .. 'money:by:' .. o.day, what .. labels(o), whole(n)) end
end

-- Adds an entry to the ledger. It contains the changes, so that counters are the sums of the entries.
local function enter(kind, id, o, reserved, spent, more)
  local fields = {'kind', kind, 'id', id, 'at', whole(now), 'job', o.job, 'day', o.day,
    'reserved', whole(reserved), 'spent', whole(spent)}
  for _, x in ipairs(more or {}) do fields[#fields + 1] = x end
  redis.call('XADD', LEDGER, '*', unpack(fields))
end

-- Waiting in turn. A queue belongs to the tenant's scopes or to one job's. A ticket that has not asked for QUEUED ms has left.
local function queue(job)
  return job and (purse(job) .. ':queue') or (MONEY .. ':queue')
end

local function leave(ticket, job)
  for _, name in ipairs({queue(), queue(job)}) do
    redis.call('ZREM', name, ticket)
    redis.call('HDEL', name .. ':seen', ticket)
  end
end

-- Puts a ticket into a queue, unless it is there, and returns the number of tickets before it.
local function line_up(name, ticket)
  if not redis.call('ZSCORE', name, ticket) then
    -- a ticket that step_out removed gets the same place back
    local left, last = redis.call('HGET', name .. ':left', ticket), redis.call('ZRANGE', name, -1, -1, 'WITHSCORES')
    redis.call('ZADD', name, left or (tonumber(last[2]) or 0) + 1, ticket)
    if left then redis.call('HDEL', name .. ':left', ticket) end
  end
  redis.call('HSET', name .. ':seen', ticket, whole(now))
  redis.call('PEXPIRE', name, QUEUED)
  redis.call('PEXPIRE', name .. ':seen', QUEUED)
  return redis.call('ZRANK', name, ticket)
end

-- Returns whether another ticket that still asks comes first.
local function behind(name, ticket)
  for _ = 1, 100 do
    local first = redis.call('ZRANGE', name, 0, 0)[1]
    if not first or first == ticket then return false end
    local seen = tonumber(redis.call('HGET', name .. ':seen', first) or 0)
    -- seen later than now: the clock was put back
    if math.abs(now - seen) < QUEUED then return true end
    redis.call('ZREM', name, first)
    redis.call('HDEL', name .. ':seen', first)
  end
  return true
end

local function wait(name, ticket, job, scope, cap, spent, reserved)
  local other = name == queue() and queue(job) or queue()
  redis.call('ZREM', other, ticket)
  redis.call('HDEL', other .. ':seen', ticket)
  local place = line_up(name, ticket)
  return {'busy', scope, whole(cap or 0), whole(spent or 0), whole(reserved or 0), resets(scope), place}
end

-- Returns whether the tenant may use a model. models: such as |openai:gpt-4o-mini|anthropic:*|
local function allowed(models, model)
  if not models or models == '' then return true end
  if string.find(model, '|', 1, true) then return false end
  local provider = string.match(model, '^[^:]*')
  return string.find(models, '|' .. model .. '|', 1, true) or string.find(models, '|' .. provider .. ':*|', 1, true)
end

-- Returns the refusal of an amount before a call is sent: {'disabled'}, {'model'}, {'exhausted', …} or nil; the tenant's
-- scopes that have a cap, each as {scope, cap, spent, reserved}; and the maximum number of its concurrent calls.
local function admit(model, n)
  local caps = redis.call('HMGET', P .. 'tenant', 'disabled', 'models', 'calls', 'total', 'month', 'day')
  if caps[1] and caps[1] ~= '' then return {'disabled'} end
  if not allowed(caps[2], model) then return {'model'} end
  local day, scopes = date(now), {}
  local windows = {total = 'total', month = 'month:' .. string.sub(day, 1, 7), day = 'day:' .. day}
  for i, scope in ipairs({'total', 'month', 'day'}) do
    local cap = tonumber(caps[i + 3] or '')
    if cap and n > 0 then  -- free calls do not wait for money
      local have = redis.call('HMGET', MONEY, 'spent:' .. windows[scope], 'reserved:' .. windows[scope])
      scopes[#scopes + 1] = {scope, cap, tonumber(have[1] or 0), tonumber(have[2] or 0)}
    end
  end
  for _, s in ipairs(scopes) do
    if s[3] + n > s[2] then
      return {'exhausted', s[1], whole(s[2]), whole(s[3]), whole(s[4]), resets(s[1])}
    end
  end
  return nil, scopes, tonumber(caps[3] or '')
end

-- Reserves in all scopes or in none. r: id, nano (string), job, model, stage, strategy, ticket, lease (ms; only without a
-- job), batch (true if the call goes into a provider's batch). entry: the opening for the ledger, JSON.
-- Returns {'reserved'}, or the refusal: {'exhausted' or 'busy', scope, cap, spent, reserved, time of the reset, place},
-- {'disabled'}, {'model'}.
local function reserve(r, entry)
  -- it was reserved before, and the reply was lost; if its lease has ended since, it is charged already
  if redis.call('HEXISTS', OPEN, r.id) == 1 or redis.call('HEXISTS', LOST, r.id) == 1 then return {'reserved'} end
  local n, day = tonumber(r.nano), date(now)
  local refused, scopes, calls = admit(r.model, n)
  local own = redis.call('HMGET', purse(r.job), 'cap_nano', 'spent_nano', 'reserved_nano')
  local cap = tonumber(own[1] or '')
  local mine = cap and n > 0 and {'job', cap, tonumber(own[2] or 0), tonumber(own[3] or 0)}
  if not refused and mine and mine[3] + n > cap then
    refused = {'exhausted', 'job', whole(cap), whole(mine[3]), whole(mine[4]), ''}
  end
  if refused then
    leave(r.ticket, r.job)
    return refused
  end
  -- reserved amounts may become free: wait in turn
  if mine and (mine[3] + mine[4] + n > cap or behind(queue(r.job), r.ticket)) then
    return wait(queue(r.job), r.ticket, r.job, unpack(mine))
  end
  for _, s in ipairs(scopes) do
    if s[3] + s[4] + n > s[2] then return wait(queue(), r.ticket, r.job, unpack(s)) end
  end
  local under_way = calls and redis.call('HLEN', OPEN) - redis.call('SCARD', BATCHED)
  -- calls in a provider's batch use no connection
  if calls and not r.batch and under_way >= calls then
    return wait(queue(), r.ticket, r.job, 'calls', calls, 0, under_way)
  end
  if ((calls and not r.batch) or scopes[1]) and behind(queue(), r.ticket) then
    return wait(queue(), r.ticket, r.job, 'turn')
  end
  local o = {nano = whole(n), day = day, job = r.job, stage = r.stage, strategy = r.strategy, model = r.model, entry = entry}
  -- this write comes first: a full Redis refuses the first write of a script that needs memory, and no later one
  redis.call('HSET', OPEN, r.id, cjson.encode(o))
  leave(r.ticket, r.job)
  if r.batch then redis.call('SADD', BATCHED, r.id) end
  if r.lease then redis.call('ZADD', LEASES, now + r.lease, r.id) end
  count(o, n, 0)
  enter('reserve', r.id, o, n, 0)
  return {'reserved'}
end

-- Sets the cap of a new job or run: its own or the tenant's cap of each job, the lower of both. wanted: string, '' for none.
local function cap_purse(name, wanted)
  local own, most = tonumber(wanted), tonumber(redis.call('HGET', P .. 'tenant', 'job') or '')
  local cap = own and most and math.min(own, most) or own or most
  if cap then redis.call('HSET', name, 'cap_nano', whole(cap)) end
end

-- Closes a reservation whose end is known or presumed. cost: nil if unknown; then the bound is charged. entry: the whole
-- attempt, JSON.
local function close(id, kind, outcome, cost, input, output, entry)
  local raw = redis.call('HGET', OPEN, id)
  local was = nil  -- earlier charge of an attempt that was presumed lost
  if not raw then
    raw = redis.call('HGET', LOST, id)
    if not raw or kind == 'lose' then return 'gone' end
    was = tonumber(cjson.decode(raw).nano)
    kind = 'correct'
  end
  local o = cjson.decode(raw)
  local bound = tonumber(o.nano)
  local charged = cost or bound
  redis.call('HDEL', OPEN, id)
  redis.call('ZREM', LEASES, id)
  redis.call('SREM', BATCHED, id)
  if was then
    redis.call('HDEL', LOST, id)
    redis.call('ZREM', LOST .. ':at', id)
    count(o, 0, charged - was)
    figure(o, 'nano', charged - was)
    figure(o, 'bound', (cost and 0 or charged) - was)
    figure(o, 'unknown', (cost and 0 or 1) - 1)
    if kind == 'correct' and outcome == 'released' then figure(o, 'attempts', -1) end
  else
    o.label, o.tier = label(o.model, outcome == 'ok'), tier(entry or o.entry)
    count(o, -bound, charged)
    if kind ~= 'release' then
      figure(o, 'attempts', 1)
      figure(o, 'nano', charged)
      if not cost then
        figure(o, 'unknown', 1)
        figure(o, 'bound', charged)
      end
    end
  end
  figure(o, 'input', input)
  figure(o, 'output', output)
  -- refused before any work: it says nothing of what calls need
  local idle = cost == 0 and input == 0 and output == 0 and kind ~= 'release' and outcome ~= 'released'
  if idle then figure(o, 'idle', 1) end
  if charged > bound then redis.call('HINCRBY', MONEY, 'over', 1) end
  if kind == 'lose' then
    redis.call('HSET', LOST, id, cjson.encode(o))
    redis.call('ZADD', LOST .. ':at', now, id)
  end
  local more = {
    'bound', whole(bound), 'charged', whole(charged), 'known', cost and '1' or '0', 'outcome', outcome,
    'stage', o.stage, 'strategy', o.strategy, 'model', o.model, 'label', o.label, 'input', whole(input), 'output', whole(output),
    'entry', entry or o.entry}
  if o.tier then more[#more + 1], more[#more + 2] = 'tier', o.tier end
  if idle then more[#more + 1], more[#more + 2] = 'idle', '1' end
  enter(kind, id, o, was and 0 or -bound, charged - (was or 0), more)
  return kind
end

-- Closes a reservation whose process is gone: its billing status is unknown, so its bound is charged.
local function lose(id)
  return close(id, 'lose', 'lost', nil, 0, 0, nil)
end

-- Charges reservations whose lease has ended at their bounds, and returns their ids. Deletes losses that are so old that no
-- report can come any more.
local function lose_expired()
  local ended = redis.call('ZRANGEBYSCORE', LEASES, '-inf', now, 'LIMIT', 0, 500)
  for _, id in ipairs(ended) do
    if lose(id) == 'gone' then redis.call('ZREM', LEASES, id) end
  end
  local old = redis.call('ZRANGEBYSCORE', LOST .. ':at', '-inf', now - REMEMBERED, 'LIMIT', 0, 500)
  for _, id in ipairs(old) do
    redis.call('HDEL', LOST, id)
    redis.call('ZREM', LOST .. ':at', id)
  end
  return ended
end

-- Releases a reservation whose call was never sent; corrects its charge if it was presumed lost.
local function release(id)
  return close(id, 'release', 'released', 0, 0, 0, nil)
end
