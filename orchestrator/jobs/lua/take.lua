-- Takes what a tenant has to be sent to the broker next: a unit that was parked, else the job that has waited longest.
-- ARGV: now and, where tenants are to share the workers, how many jobs of it (and how many calls) the broker may hold
-- unclaimed, and how many of its units may wait for headroom at a time; both grow with what it has under way.
-- Says 'later' where it has something that is not to be sent now, and 'more' where it met only such as are not to be sent
-- at all, e.g. a batch that was cancelled: a script holds up everybody else.
local PARKED = P .. 'parked'
local lead, waiters = tonumber(ARGV[2] or ''), tonumber(ARGV[3] or '')

-- Tickets of a queue that somebody still asks with, up to a number.
local function asking(name, most)
  local tickets = redis.call('ZRANGE', name, 0, most + 20)
  if #tickets == 0 then return 0 end
  local n = 0
  for _, seen in ipairs(redis.call('HMGET', name .. ':seen', unpack(tickets))) do
    if seen and math.abs(now - tonumber(seen)) < QUEUED then n = n + 1 end
  end
  return n
end

-- Whether the workers have enough of this tenant's already.
local function enough()
  local jobs, calls = redis.call('ZCARD', unclaimed('answer')), redis.call('ZCARD', unclaimed('extract'))
  local under_way = redis.call('ZCARD', P .. 'leases')
  local most = math.max(lead, under_way)
  if jobs >= most or calls >= most then return true end
  local places = math.max(waiters, math.floor(under_way / 4))
  local waiting = asking(queue(), places) + asking(P .. 'rates:queue', places)
  -- what is sent beyond that would only hold workers' places, or be parked
  return waiting > 0 and waiting + jobs + calls >= places
end

local function nothing()
  local some = redis.call('LLEN', P .. 'waiting') > 0 or redis.call('ZCARD', PARKED) > 0
  return lead and some and 'later' or false
end

if lead and enough() then return nothing() end

-- those that were begun come first
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
-- until then the tenant's minute is full: whatever it has would be turned away
if lead and now < tonumber(redis.call('GET', P .. 'parked:until') or 0) then return nothing() end

for _ = 1, 200 do
  local id = redis.call('LPOP', P .. 'waiting')
  if not id then return nothing() end
  local u = get(id, 'state') == 'queued' and unit(id, 'answer')
  -- a job that was tried again may stand in the list twice
  if u and not redis.call('ZSCORE', unclaimed('answer'), member(id, 'answer')) then
    dispatch(id, 'answer', u)
    return member(id, 'answer')
  end
end
return 'more'
