-- Creates a watch, which is due at once, unless the tenant has the same one. 'watches' has the time, ms, at which each is
-- forgotten: +inf until it ends. ARGV: now, id, request (JSON), period in ms, maximum number of watches that have not ended,
-- literature to fetch (JSON) or ''
local live = redis.call('ZRANGEBYSCORE', P .. 'watches', '+inf', '+inf')
for _, id in ipairs(live) do
  local told = redis.call('HMGET', P .. 'watch:' .. id, 'request', 'every', 'live')
  if told[1] == ARGV[3] and told[2] == ARGV[4] and (told[3] or '') == ARGV[6] then return {'known', id} end
end
if #live >= tonumber(ARGV[5]) then return {'full', ''} end
redis.call('HSET', P .. 'watch:' .. ARGV[2], 'id', ARGV[2], 'request', ARGV[3], 'every', ARGV[4], 'state', 'active',
  'created', now, 'next', now, 'step', 0, 'asked', 0)
if ARGV[6] ~= '' then redis.call('HSET', P .. 'watch:' .. ARGV[2], 'live', ARGV[6]) end
redis.call('ZADD', P .. 'watches', '+inf', ARGV[2])
redis.call('ZADD', P .. 'watches:due', now, ARGV[2])
return {'created', ARGV[2]}
