-- Pauses an endpoint, whose messages then wait, or resumes it. ARGV: now, id, 1 (pause) or 0 (resume)
if redis.call('HEXISTS', WEBHOOKS, ARGV[2]) == 0 then return 0 end
if ARGV[3] == '1' then
  redis.call('HSETNX', webhook(ARGV[2]), 'paused', whole(now))
else
  redis.call('HDEL', webhook(ARGV[2]), 'paused')
end
plan(ARGV[2])
return 1
