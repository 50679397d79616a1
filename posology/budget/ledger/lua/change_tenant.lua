-- Sets fields of a tenant's record, and removes those that are empty. ARGV: now, fields (JSON object of strings)
if redis.call('HEXISTS', P .. 'tenant', 'created') == 0 then return 'gone' end
for name, value in pairs(cjson.decode(ARGV[2])) do
  if value == '' then
    redis.call('HDEL', P .. 'tenant', name)
  else
    redis.call('HSET', P .. 'tenant', name, value)
  end
end
redis.call('HSET', P .. 'tenant', 'changed', whole(now))
return 'changed'
