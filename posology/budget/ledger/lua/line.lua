-- Waits in turn for the tenant's minute: requests and tokens, in a queue of their own. ARGV: now, ticket, and
-- 'ask': says {how many are served before it, '1' if it stood in the queue, what was granted to it before and kept}, and
-- puts it there if some are served before and nothing is kept; 'wait': puts it there, and says the same; 'leave'; 'keep',
-- what was granted, and for how many ms.
local name, ticket = P .. 'rates:queue', ARGV[2]
local granted = P .. 'rates:granted:' .. ticket
if ARGV[3] == 'keep' then
  if ARGV[4] == '' then redis.call('DEL', granted) else redis.call('SET', granted, ARGV[4], 'PX', ARGV[5]) end
  return {0, '0', ''}
end
local stood = redis.call('ZSCORE', name, ticket) and '1' or '0'
if ARGV[3] == 'leave' then
  redis.call('ZREM', name, ticket)
  redis.call('HDEL', name .. ':seen', ticket)
  return {0, stood, ''}
end
if ARGV[3] == 'ask' then
  local kept = redis.call('GET', granted)
  if kept then redis.call('DEL', granted) end
  if kept or not behind(name, ticket) then return {0, stood, kept or ''} end
end
return {line_up(name, ticket), stood, ''}
