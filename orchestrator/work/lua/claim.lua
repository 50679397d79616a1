-- Claim an item. ARGV: now, name ('': the one that waits longest), token (unique to a claim, so that one whose reply was lost
-- can be repeated), lease in ms, maximum held items of the group (0: no limit). Returns {name, record, runs, cancelled}, or
-- nothing.
local name, token, most = ARGV[2], ARGV[3], tonumber(ARGV[5])
local function reply(of)
  local record, runs, cancelled = unpack(redis.call('HMGET', item(of), 'record', 'runs', 'cancelled'))
  return {of, record, runs, cancelled or '0'}
end
local held = name ~= '' and {name} or redis.call('ZRANGE', P .. 'leases', 0, -1)
for _, one in ipairs(held) do
  if get(one, 'token') == token and get(one, 'state') == 'held' then return reply(one) end
end
if most > 0 and redis.call('ZCARD', P .. 'leases') >= most then return false end
if name == '' then name = redis.call('ZRANGE', P .. 'queue', 0, 0)[1] end
if not name or get(name, 'state') ~= 'waiting' then return false end
redis.call('HSET', item(name), 'token', token)
redis.call('HINCRBY', item(name), 'runs', 1)
put(name, 'held', 'leases', now + tonumber(ARGV[4]))
redis.call('HSETNX', P .. 'totals', 'swept', now)
return reply(name)
