-- Closes an attempt: its cost is accepted from any worker, also from one that has lost its claim on the unit.
-- The reply is stored in the same step, so that no paid reply is lost.
-- ARGV: now, id, attempt id, outcome, the attempt (JSON), nano-dollars or '' if unknown,
-- tokens in, tokens out, latency in ms, reply (JSON) or ''
local id, attempt, outcome = ARGV[2], ARGV[3], ARGV[4]
local cost, input, output = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local raw = redis.call('HGET', key(id, 'calls'), attempt)
if not raw then
  -- the job's record is deleted, but the money still counts
  return {'gone', close(attempt, 'settle', outcome, cost, input, output, ARGV[5])}
end
local entry = cjson.decode(raw)
local was_lost = entry.outcome == 'lost'
if entry.outcome and not was_lost then return {'closed'} end  -- reported before
for name, value in pairs(cjson.decode(ARGV[5])) do entry[name] = value end
close(attempt, 'settle', outcome, cost, input, output, cjson.encode(entry))
redis.call('HSET', key(id, 'calls'), attempt, cjson.encode(entry))
redis.call('SREM', key(id, 'open'), attempt)
local batch = get(id, 'batch')
local function tally(field, n)
  redis.call('HINCRBY', key(id), field, n)
  if batch then redis.call('HINCRBY', P .. 'batch:' .. batch, field, n) end
end
local told = labels(entry, outcome)
local M = P .. 'metrics'
if was_lost then forget_loss(id, entry) end
if ARGV[6] == '' then
  tally('unknown_costs', 1)
  redis.call('HINCRBY', M, 'unknown' .. told, 1)
else
  tally('known_nano', ARGV[6])
  redis.call('HINCRBY', M, 'nano' .. told, ARGV[6])
end
redis.call('HINCRBY', M, 'attempts' .. told .. '|' .. outcome, 1)
redis.call('HINCRBY', M, 'input' .. told, ARGV[7])
redis.call('HINCRBY', M, 'output' .. told, ARGV[8])
local ms = tonumber(ARGV[9])
-- the time of a provider's batch does not measure the model's speed
if entry.tier ~= 'batch' then
  redis.call('HINCRBY', M, 'latency_ms|' .. entry.stage, ms)
  for _, bound in ipairs(BUCKETS) do
    if ms <= bound * 1000 then
      redis.call('HINCRBY', M, 'latency_le|' .. entry.stage .. '|' .. bound, 1)
      break
    end
  end
  redis.call('HINCRBY', M, 'latency_count|' .. entry.stage, 1)
end
-- a reply that was unusable in an earlier try must not be replayed in this one
local stale = outcome ~= 'ok' and entry.token <= tonumber(get(id, 'tried') or 0)
if ARGV[10] ~= '' and not stale then
  redis.call('HSET', key(id, 'memo'), entry.key, ARGV[10])
  if outcome ~= 'ok' then redis.call('SADD', key(id, 'unusable'), entry.key) end
end
event(id, 'call', {stage = entry.stage, call = entry.call, attempt = entry.attempt, outcome = outcome})
return {'closed'}
