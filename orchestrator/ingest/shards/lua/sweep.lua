-- Finds what nobody works on any more. ARGV: now, losses that a shard may cause, ms after which what was sent and not claimed
-- is taken for lost (0: the queue still holds messages), what is said of a shard that lost too many workers.
local losses, unclaimed, why = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local found = 0
for _, name in ipairs(redis.call('ZRANGEBYSCORE', P .. 'leases', '-inf', now, 'LIMIT', 0, 200)) do
  found = found + 1
  if redis.call('HINCRBY', shard(name), 'losses', 1) >= losses then
    fail(name, why, '0')
  else
    queue(name)
  end
end
if unclaimed > 0 then
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', P .. 'sent', '-inf', now - unclaimed, 'LIMIT', 0, 200)) do
    found = found + 1
    queue(name)
  end
end
return found
