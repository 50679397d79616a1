-- Marks the reply to a call in a provider's batch as unusable: only the unit that reads it, with the schema, can see that.
-- ARGV: now, id, key of the call, error
local id, k = ARGV[2], ARGV[3]
for _, raw in ipairs(redis.call('HVALS', key(id, 'calls'))) do
  local entry = cjson.decode(raw)
  if entry.key == k and entry.outcome == 'ok' then
    local told = labels(entry, 'ok')
    -- a counter never falls: the attempt stays among those that were replied to
    redis.call('HINCRBY', P .. 'metrics', 'attempts' .. told .. '|unusable', 1)
    entry.outcome, entry.error = 'unusable', ARGV[4]
    redis.call('HSET', key(id, 'calls'), entry.id, cjson.encode(entry))
    redis.call('SADD', key(id, 'unusable'), k)
  end
end
return 'noted'
