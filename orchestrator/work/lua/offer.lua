-- Offer an item. ARGV: now, name, record, key or '', bytes, maximum items that have not ended, maximum bytes of all (0: no
-- limit), end from which it is offered again ('*': any), seconds after which the group expires (0: never), end of an item that
-- ended elsewhere ('': it waits).
-- Returns {'offered', name}: an item of the key that stands for the request has another name, or {'items', count} or
-- {'bytes', sum} if that limit is reached.
local name, key, size = ARGV[2], ARGV[4], tonumber(ARGV[5])
local most, room, again, keep = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8], tonumber(ARGV[9])

local function expire()
  if keep == 0 then return end
  for _, part in ipairs({'item:' .. name, 'queue', 'sent', 'leases', 'ended', 'totals'}) do
    redis.call('EXPIRE', P .. part, keep)
  end
end

local known = name
if key ~= '' and not get(name, 'state') then known = redis.call('HGET', P .. 'keys', key) or name end
local state = get(known, 'state')
if state then
  -- an ended one stands for its request, unless it is this one that is offered again, or another one is made each time
  local stands = not over(state) or (known ~= name and again ~= '')
  if known == name then stands = stands or (again ~= '*' and again ~= state) end
  if stands then
    expire()
    return {'offered', known}
  end
end
local renewed = known == name and state
local count = redis.call('ZCARD', P .. 'queue') + redis.call('ZCARD', P .. 'sent') + redis.call('ZCARD', P .. 'leases')
if most > 0 and count >= most then return {'items', tostring(count)} end
local bytes = tonumber(redis.call('HGET', P .. 'totals', 'bytes') or 0)
-- one that is offered again keeps its rows: they were paid for
if room > 0 and not renewed and bytes + size > room then return {'bytes', tostring(bytes)} end

if renewed then
  resize(name, 'size', 0)
  lift(name)
end
local rows = renewed and get(name, 'rows') or 0
redis.call('DEL', item(name))
redis.call('HSET', item(name), 'record', ARGV[3], 'key', key, 'rows', rows, 'runs', 0)
redis.call('HSET', item(name), 'place', redis.call('HINCRBY', P .. 'totals', 'place', 1))
if not renewed then
  -- rows from before the item
  local sum = 0
  for _, row in ipairs(redis.call('LRANGE', P .. 'rows:' .. name, 0, -1)) do sum = sum + #row end
  resize(name, 'rows', sum)
end
resize(name, 'size', size)
if key ~= '' then redis.call('HSET', P .. 'keys', key, name) end
if ARGV[10] == '' then wait(name) else put(name, ARGV[10], 'ended', now) end
expire()
return {'offered', name}
