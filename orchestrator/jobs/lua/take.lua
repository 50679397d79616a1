-- Takes a tenant's next unit for the broker: a parked unit, else the job that has waited longest.
-- ARGV: now and, if tenants share the workers, the maximum of its unclaimed jobs (and of its unclaimed calls) in the broker,
-- and the maximum of its units that wait for budget at a time; both grow with the number of its running units.
-- Returns 'later' if no unit may be sent now, and 'more' if all entries that it read, 200 at most, were not to be sent at all,
-- such as those of a cancelled batch: the caller repeats it, as a script blocks Redis.
local PARKED = P .. 'parked'
local lead, waiters = tonumber(ARGV[2] or ''), tonumber(ARGV[3] or '')

-- Counts the tickets of a queue whose calls still ask, up to a maximum.
local function asking(name, most)
  local tickets = redis.call('ZRANGE', name, 0, most + 20)
  if #tickets == 0 then return 0 end
  local n = 0
  for _, seen in ipairs(redis.call('HMGET', name .. ':seen', unpack(tickets))) do
    if seen and math.abs(now - tonumber(seen)) < QUEUED then n = n + 1 end
  end
  return n
end

-- Returns whether the workers have enough units of this tenant.
local function enough()
  local jobs, calls = redis.call('ZCARD', unclaimed('answer')), redis.call('ZCARD', unclaimed('extract'))
  local under_way = redis.call('ZCARD', P .. 'leases')
  local most = math.max(lead, under_way)
  if jobs >= most or calls >= most then return true end
  local places = math.max(waiters, math.floor(under_way / 4))
  local waiting = asking(queue(), places) + asking(P .. 'rates:queue', places)
  -- more units would only occupy the workers' places, or be parked
  return waiting > 0 and waiting + jobs + calls >= places
end

local function nothing()
  local some = redis.call('LLEN', P .. 'waiting') > 0 or redis.call('ZCARD', PARKED) > 0
  return lead and some and 'later' or false
end

if lead and enough() then return nothing() end

-- parked units, which have begun, come first
local due = redis.call('ZRANGEBYSCORE', PARKED, '-inf', now, 'LIMIT', 0, 200)
for _, m in ipairs(due) do
  redis.call('ZREM', PARKED, m)
  local id, name = split(m)
  local state, u = get(id, 'state'), unit(id, name)
  if state and not OVER[state] and u and u.s == 'waiting' and not redis.call('ZSCORE', unclaimed(name), m) then
    dispatch(id, name, u)
    return m
  end
end
if #due > 0 then return 'more' end
-- until then the tenant's minute is full: each unit would be refused
if lead and now < tonumber(redis.call('GET', P .. 'parked:until') or 0) then return nothing() end

for _ = 1, 200 do
  local id = redis.call('LPOP', P .. 'waiting')
  if not id then return nothing() end
  local u = get(id, 'state') == 'queued' and unit(id, 'answer')
  -- a retried job may be in the list twice
  if u and not redis.call('ZSCORE', unclaimed('answer'), member(id, 'answer')) then
    dispatch(id, 'answer', u)
    return member(id, 'answer')
  end
end
return 'more'
