-- End an item. ARGV: now, name, token ('': any worker may end it), end, record ('': unchanged), bytes that it still has ('':
-- unchanged), 1 to drop its rows. Returns 1, also if that was done before, or 0 if the claim does not hold.
local name, token = ARGV[2], ARGV[3]
local state, by = unpack(redis.call('HMGET', item(name), 'state', 'token'))
if not state then return 0 end
if token ~= '' and not holds(name, token) then
  return by == token and over(state) and 1 or 0
end
put(name, ARGV[4], 'ended', now)
redis.call('HDEL', item(name), 'cancelled', 'error', 'cause')
if ARGV[5] ~= '' then redis.call('HSET', item(name), 'record', ARGV[5]) end
if ARGV[6] ~= '' then resize(name, 'size', tonumber(ARGV[6])) end
if ARGV[7] == '1' then
  resize(name, 'rows', 0)
  redis.call('DEL', P .. 'rows:' .. name)
end
return 1
