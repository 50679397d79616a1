-- Waits in turn for the tenant's minute: requests and tokens, in a queue of their own. ARGV: now, ticket, and
-- 'ask': says {how many are served before it, '1' if it stood in the queue}, and puts it there if that is any;
-- 'wait': puts it there, and says the same; 'leave'.
local name, ticket = P .. 'rates:queue', ARGV[2]
local stood = redis.call('ZSCORE', name, ticket) and '1' or '0'
if ARGV[3] == 'leave' then
  redis.call('ZREM', name, ticket)
  redis.call('HDEL', name .. ':seen', ticket)
  return {0, stood}
end
if ARGV[3] == 'ask' and not behind(name, ticket) then return {0, stood} end
return {line_up(name, ticket), stood}
