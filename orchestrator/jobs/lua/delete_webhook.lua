-- Deletes an endpoint of webhooks with all of its messages. ARGV: now, id
if redis.call('HDEL', WEBHOOKS, ARGV[2]) == 0 then return 0 end
for _, subject in ipairs(redis.call('ZRANGE', webhook(ARGV[2], 'due'), 0, -1)) do
  redis.call('DEL', webhook(ARGV[2], 'about:' .. subject))
end
redis.call('DEL', webhook(ARGV[2]), webhook(ARGV[2], 'due'), webhook(ARGV[2], 'since'), webhook(ARGV[2], 'failed'))
plan(ARGV[2])
if redis.call('HLEN', WEBHOOKS) == 0 then redis.call('DEL', WEBHOOKS .. ':made') end
return 1
