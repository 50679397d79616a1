-- Requeue shards of dead workers and lost messages. ARGV: now, maximum losses of a shard, ms after which an unclaimed message
-- is considered lost (0: never, the queue still holds messages), error of a shard with too many losses. Returns their number.
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
