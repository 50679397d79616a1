-- Take the next item to be sent to the broker, or nothing. ARGV: now.
local name = redis.call('ZRANGE', P .. 'queue', 0, 0)[1]
if not name then return false end
redis.call('ZREM', P .. 'queue', name)
redis.call('ZADD', P .. 'sent', now, name)
return name
