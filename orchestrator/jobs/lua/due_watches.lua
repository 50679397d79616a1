-- Forgets watches that ended long ago. Returns whether the tenant has watches, then the ids of those that are due. ARGV: now
local name = P .. 'watches'
for _, id in ipairs(redis.call('ZRANGEBYSCORE', name, '-inf', now)) do
  redis.call('DEL', P .. 'watch:' .. id, P .. 'watch:' .. id .. ':changes')
  redis.call('ZREM', name, id)
end
local found = redis.call('ZRANGEBYSCORE', P .. 'watches:due', '-inf', now)
table.insert(found, 1, redis.call('EXISTS', name))
return found
