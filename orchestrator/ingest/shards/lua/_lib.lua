-- Library of all scripts of a run of shards. KEYS[1]: prefix of the run's keys. ARGV[1]: time in ms, or 0 for the
-- server's clock.
--   shard:NAME   hash: state (waiting, held, done, failed), token, delivery, worker, error, lacking,
--                and counts: claims (tries), dead workers (losses), own faults (misses), faults of workers (returns)
--   shards       set of all names
--   waiting      list of names to be sent to the broker
--   sent         zset of names sent and not yet claimed, by time of sending
--   leases       zset of claimed names, by end of the lease
local P = KEYS[1]
local now = tonumber(ARGV[1])
if now == 0 then
  local t = redis.call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end

-- an abandoned run expires
local KEEP = 7 * 24 * 3600

local function shard(name)
  return P .. 'shard:' .. name
end

local function keep(name)
  redis.call('EXPIRE', shard(name), KEEP)
  for _, part in ipairs({'shards', 'waiting', 'sent', 'leases', 'place', 'token'}) do
    redis.call('EXPIRE', P .. part, KEEP)
  end
end

local function queue(name)
  redis.call('HSET', shard(name), 'state', 'waiting')
  redis.call('ZREM', P .. 'leases', name)
  redis.call('ZREM', P .. 'sent', name)
  redis.call('LREM', P .. 'waiting', 0, name)
  redis.call('RPUSH', P .. 'waiting', name)
end

local function fail(name, why, lacking)
  redis.call('HSET', shard(name), 'state', 'failed', 'error', why, 'lacking', lacking)
  redis.call('ZREM', P .. 'leases', name)
  redis.call('ZREM', P .. 'sent', name)
  redis.call('LREM', P .. 'waiting', 0, name)
end
