-- Records the result of a look at a watch, unless it was taken, paused or ended meanwhile: then returns 0.
-- ARGV: now, id, step at which it was taken, fields (JSON; false: none), time of the next look, change (JSON) or '', content
-- of its webhook messages (JSON), number of changes that are kept
local name, due = P .. 'watch:' .. ARGV[2], P .. 'watches:due'
if redis.call('HGET', name, 'step') ~= ARGV[3] then return 0 end
redis.call('HINCRBY', name, 'step', 1)
for field, value in pairs(cjson.decode(ARGV[4])) do
  if value then redis.call('HSET', name, field, value) else redis.call('HDEL', name, field) end
end
redis.call('ZADD', due, ARGV[5], ARGV[2])
if ARGV[6] ~= '' then
  redis.call('LPUSH', name .. ':changes', ARGV[6])
  redis.call('LTRIM', name .. ':changes', 0, ARGV[8] - 1)
  announce('watch.changed', ARGV[2], function() return cjson.decode(ARGV[7]) end)
end
return 1
