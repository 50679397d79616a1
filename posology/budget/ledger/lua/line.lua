-- Queue of tickets for the tenant's minute (requests and tokens). ARGV: now, ticket, and one of
-- 'ask': returns {number of tickets before it, '1' if it was in the queue, its kept grant or ''}, and adds it to the queue if
-- others come first and it has no grant; 'wait': adds it, and returns the same; 'leave': removes it; 'keep', grant, ms: keeps
-- a grant for some ms ('' deletes it).
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
