-- Creates a tenant with its first key, unless it exists. ARGV: now, id of the key, limits (JSON object of strings)
if redis.call('HEXISTS', P .. 'keys', ARGV[2]) == 1 then return 'created' end  -- the reply to it was lost
if redis.call('HEXISTS', P .. 'tenant', 'created') == 1 then return 'exists' end
redis.call('DEL', P .. 'tenant', P .. 'keys')
for name, value in pairs(cjson.decode(ARGV[3])) do
  if value ~= '' then redis.call('HSET', P .. 'tenant', name, value) end
end
redis.call('HSET', P .. 'tenant', 'created', whole(now), 'changed', whole(now))
redis.call('HSET', P .. 'keys', ARGV[2], whole(now) .. ':')
return 'created'
