-- What every script of a run of shards begins with. KEYS[1] is what all keys of the run start with; ARGV[1] is the time,
-- ms, or 0 for the server's own.
--   shard:NAME   hash: state (waiting, held, done, failed), token, delivery, worker, error, lacking,
--                and how often it was begun (tries), lost its worker (losses), was at fault (misses), or its worker (returns)
--   shards       set of the names
--   waiting      list of names that are to be sent to the broker
--   sent         zset of names that were sent and that nobody has claimed, by when
--   leases       zset of names that a worker holds, by when its lease ends
local P = KEYS[1]
local now = tonumber(ARGV[1])
if now == 0 then
  local t = redis.call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end

-- a run that its writer never ends must not stay for good
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
