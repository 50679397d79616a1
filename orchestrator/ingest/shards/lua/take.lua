-- Take the next shard to be sent to the broker, or nothing. ARGV: now.
local name = redis.call('LPOP', P .. 'waiting')
if not name then return false end
redis.call('ZADD', P .. 'sent', now, name)
return name
