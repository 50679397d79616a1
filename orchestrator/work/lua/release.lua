-- Return an item to the queue. ARGV: now, name, token ('': it was sent and not claimed), record ('': unchanged), cause of a
-- failure ('': none, and the claim does not count), maximum failures of that cause, error. After so many it has failed.
-- Returns 1, or 0 if the claim does not hold.
local name, token, cause = ARGV[2], ARGV[3], ARGV[5]
if token == '' then
  if get(name, 'state') ~= 'waiting' then return 0 end
  wait(name)
  return 1
end
if not holds(name, token) then return 0 end
if ARGV[4] ~= '' then redis.call('HSET', item(name), 'record', ARGV[4]) end
redis.call('HDEL', item(name), 'token')
if cause == '' then
  redis.call('HINCRBY', item(name), 'runs', -1)
elseif redis.call('HINCRBY', item(name), cause, 1) >= tonumber(ARGV[6]) then
  fail(name, cause, ARGV[7])
  return 1
end
wait(name)
return 1
