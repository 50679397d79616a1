-- Library of all scripts of a group of items: of a tenant, or of a run of shards. KEYS[1]: prefix of the group's keys.
-- ARGV[1]: time in ms, or 0 for the server's clock.
--   item:NAME  hash: state (waiting, held, or an end), record (the caller's text), key, size (bytes), rows (bytes of its list),
--              place (in the queue), token (of the last claim), runs (claims), cancelled, error and cause (of a failure),
--              and counts of failures by their causes
--   rows:NAME  list of rows, which only the holder appends
--   queue      zset of waiting names, by place
--   sent       zset of waiting names that were sent to the broker, by time
--   leases     zset of held names, by end of the lease
--   ended      zset of ended names, by time
--   keys       hash: key of a request -> name
--   totals     hash: number of items by state, bytes of all, last place, and while items are held swept (time of the last sweep)
local P = KEYS[1]
local now = tonumber(ARGV[1])
if now == 0 then
  local t = redis.call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end

local function item(name)
  return P .. 'item:' .. name
end

local function get(name, field)
  return redis.call('HGET', item(name), field)
end

local function over(state)
  return state and state ~= 'waiting' and state ~= 'held'
end

-- take a name off its set and its state off the totals
local function lift(name)
  local state = get(name, 'state')
  if state then redis.call('HINCRBY', P .. 'totals', state, -1) end
  for _, set in ipairs({'queue', 'sent', 'leases', 'ended'}) do
    redis.call('ZREM', P .. set, name)
  end
end

local function put(name, state, set, score)
  lift(name)
  redis.call('HINCRBY', P .. 'totals', state, 1)
  redis.call('HSET', item(name), 'state', state)
  redis.call('ZADD', P .. set, score, name)
end

-- a cancelled item is the next one, to be ended
local function wait(name)
  put(name, 'waiting', 'queue', get(name, 'cancelled') and 0 or get(name, 'place'))
end

local function fail(name, cause, why)
  redis.call('HSET', item(name), 'cause', cause, 'error', why)
  put(name, 'failed', 'ended', now)
end

-- set the bytes of a field: size or rows
local function resize(name, field, bytes)
  redis.call('HINCRBY', P .. 'totals', 'bytes', bytes - tonumber(get(name, field) or 0))
  redis.call('HSET', item(name), field, bytes)
end

-- whether a claim holds: also one whose lease has ended, as long as there is no later claim
local function holds(name, token)
  local state, by = unpack(redis.call('HMGET', item(name), 'state', 'token'))
  return by == token and (state == 'held' or state == 'waiting')
end

local function drop(name)
  lift(name)
  resize(name, 'size', 0)
  resize(name, 'rows', 0)
  local key = get(name, 'key')
  if key and redis.call('HGET', P .. 'keys', key) == name then
    redis.call('HDEL', P .. 'keys', key)
  end
  redis.call('DEL', item(name), P .. 'rows:' .. name)
end

-- number of items; the keys of a group without any are removed
local function left()
  local count = 0
  for _, set in ipairs({'queue', 'sent', 'leases', 'ended'}) do
    count = count + redis.call('ZCARD', P .. set)
  end
  if count == 0 then redis.call('DEL', P .. 'totals', P .. 'keys') end
  return count
end
