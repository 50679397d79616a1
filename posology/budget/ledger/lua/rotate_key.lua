-- Gives a tenant a new key, and ends its other keys, now or after an overlap; a key that ends earlier gets no more time.
-- ARGV: now, id of the new key, overlap in ms. Returns {'rotated', id of an old key, its end in ms, …} or {'gone'}.
local KEYS_OF, new, grace = P .. 'keys', ARGV[2], tonumber(ARGV[3])
if redis.call('HEXISTS', P .. 'tenant', 'created') == 0 then return {'gone'} end
local said = {'rotated'}
if redis.call('HEXISTS', KEYS_OF, new) == 1 then return said end  -- the reply to it was lost
local all = redis.call('HGETALL', KEYS_OF)
for i = 1, #all, 2 do
  local created, expires = string.match(all[i + 1], '^(%d+):(%d*)$')
  local ends = math.min(tonumber(expires) or math.huge, now + grace)
  if ends <= now then
    redis.call('HDEL', KEYS_OF, all[i])
  else
    redis.call('HSET', KEYS_OF, all[i], created .. ':' .. whole(ends))
  end
  said[#said + 1] = all[i]
  said[#said + 1] = whole(ends)
end
redis.call('HSET', KEYS_OF, new, whole(now) .. ':')
return said
