-- Takes a due watch: no other process looks at it for a while. Returns the time and its record; nothing: it is not due.
-- ARGV: now, id, ms of that while
local name, due = P .. 'watch:' .. ARGV[2], P .. 'watches:due'
local at = redis.call('ZSCORE', due, ARGV[2])
if not at or tonumber(at) > now then return {} end
redis.call('ZADD', due, now + tonumber(ARGV[3]), ARGV[2])
redis.call('HINCRBY', name, 'step', 1)
local found = redis.call('HGETALL', name)
table.insert(found, 1, whole(now))
return found
