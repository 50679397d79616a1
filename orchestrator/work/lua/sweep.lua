-- Return items of dead holders and lost messages to the queue, and drop ended items. ARGV: now, lease in ms, maximum deaths (0:
-- no limit), error of an item with so many, ms after which a sent message is considered lost (0: never), time in ms before
-- which ended items are dropped, maximum ended items (0: no limit).
-- Returns the number of items that returned, then the names of those that were dropped.
local lease, most, why = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local unclaimed, before, kept = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local function upto(set, score)
  return redis.call('ZRANGEBYSCORE', P .. set, '-inf', score, 'LIMIT', 0, 200)
end
-- the clock was put back
for _, name in ipairs(redis.call('ZRANGEBYSCORE', P .. 'leases', '(' .. now + lease, '+inf')) do
  redis.call('ZADD', P .. 'leases', now + lease, name)
end
-- without sweeps for half a lease, Redis was away: holders that live have time for a heartbeat
if redis.call('ZCARD', P .. 'leases') == 0 then
  redis.call('HDEL', P .. 'totals', 'swept')
else
  local last = tonumber(redis.call('HGET', P .. 'totals', 'swept') or now)
  redis.call('HSET', P .. 'totals', 'swept', now)
  for _, name in ipairs(now - last > lease / 2 and upto('leases', now) or {}) do
    redis.call('ZADD', P .. 'leases', now + lease / 2, name)
  end
end
local reply = {0}
for _, name in ipairs(upto('leases', now)) do
  if get(name, 'state') then
    reply[1] = reply[1] + 1
    local count = redis.call('HINCRBY', item(name), 'deaths', 1)
    if most > 0 and count >= most then
      fail(name, 'deaths', why)
    else
      wait(name)
    end
  else
    -- of another version, or expired
    redis.call('ZREM', P .. 'leases', name)
  end
end
for _, name in ipairs(unclaimed > 0 and upto('sent', now - unclaimed) or {}) do
  if get(name, 'state') then
    reply[1] = reply[1] + 1
    wait(name)
  else
    redis.call('ZREM', P .. 'sent', name)
  end
end
local dropped = upto('ended', '(' .. before)
if kept > 0 then
  for _, name in ipairs(redis.call('ZRANGE', P .. 'ended', 0, -1 - kept)) do
    if tonumber(redis.call('ZSCORE', P .. 'ended', name)) >= before then table.insert(dropped, name) end
  end
end
for _, name in ipairs(dropped) do
  drop(name)
  table.insert(reply, name)
end
if #dropped > 0 then left() end
return reply
