-- Removes the oldest entries from the ledger, and adds their changes to the base, so that counters stay the sum of both.
-- ARGV: now, last place to remove, maximum number of entries, and the link of the record at that place ('' for a file
-- without a chain). Returns the number of removed entries, and the place of the last one.
local BASE = MONEY .. ':base'
local sums = {}  -- key → field → sum

local function add(name, field, n)
  if n == 0 then return end
  sums[name] = sums[name] or {}
  sums[name][field] = (sums[name][field] or 0) + n
end

-- Adds to the base what close() added to the figures of a day; posology/budget/books/sums.py does the same.
local function refigure(f, spent)
  local by = labels(f)
  local name = BASE .. ':by:' .. f.day
  local charged, unknown = tonumber(f.charged), f.known == '1' and 0 or 1
  add(name, 'input' .. by, tonumber(f.input))
  add(name, 'output' .. by, tonumber(f.output))
  add(name, 'nano' .. by, spent)
  if f.kind == 'correct' then
    local was = charged - spent
    add(name, 'bound' .. by, unknown * charged - was)
    add(name, 'unknown' .. by, unknown - 1)
    if f.outcome == 'released' then add(name, 'attempts' .. by, -1) end
  elseif f.kind ~= 'release' then
    add(name, 'bound' .. by, unknown * charged)
    add(name, 'unknown' .. by, unknown)
    add(name, 'attempts' .. by, 1)
  end
  if f.idle then add(name, 'idle' .. by, 1) end
  if charged > tonumber(f.bound) then add(BASE, 'over', 1) end
end

local entries = redis.call('XRANGE', LEDGER, '-', ARGV[2], 'COUNT', ARGV[3])
if #entries == 0 then return {0, redis.call('HGET', BASE, 'upto') or '0-0'} end
local places, days, opened, closed = {}, {}, {}, {}
for i, entry in ipairs(entries) do
  local f = {}
  for k = 1, #entry[2], 2 do f[entry[2][k]] = entry[2][k + 1] end
  places[i], days[f.day] = entry[1], true
  local reserved, spent = tonumber(f.reserved), tonumber(f.spent)
  for _, window in ipairs({'day:' .. f.day, 'month:' .. string.sub(f.day, 1, 7), 'total'}) do
    add(BASE, 'reserved:' .. window, reserved)
    add(BASE, 'spent:' .. window, spent)
  end
  -- in the record itself, so that both are deleted together
  local name = purse(f.job)
  if redis.call('EXISTS', name) == 1 then
    add(name, 'base_reserved_nano', reserved)
    add(name, 'base_spent_nano', spent)
  end
  if f.kind == 'reserve' then
    opened[f.id] = whole(reserved)
  elseif f.kind ~= 'correct' then
    opened[f.id], closed[f.id] = nil, true
  end
  if f.charged then refigure(f, spent) end
end
-- Everything is read before this first write: a full Redis does not stop a script whose first write frees memory.
redis.call('XDEL', LEDGER, unpack(places))
local last = places[#places]
redis.call('HSET', BASE, 'upto', last)
if last == ARGV[2] and ARGV[4] ~= '' then redis.call('HSET', BASE, 'chain', ARGV[4]) end
redis.call('HINCRBY', BASE, 'entries', #places)
for name, fields in pairs(sums) do
  for field, n in pairs(fields) do redis.call('HINCRBY', name, field, whole(n)) end
end
for day in pairs(days) do redis.call('HINCRBY', BASE, 'spent:day:' .. day, 0) end  -- the day has figures, even if it cost nothing
for id in pairs(closed) do redis.call('HDEL', BASE, 'open:' .. id) end
for id, n in pairs(opened) do redis.call('HSET', BASE, 'open:' .. id, n) end
return {#places, last}
