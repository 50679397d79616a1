-- Adds to counters what is missing from them. It may come while the tenant spends: what is missing stays the same.
-- ARGV: now, how often counters were put right when this was found, then of each counter: its key below the prefix,
-- its field, and what is missing. Returns how often they were put right by now, or 'moved'.
local BASE = MONEY .. ':base'
if (redis.call('HGET', BASE, 'mended') or '0') ~= ARGV[2] then return 'moved' end
for i = 3, #ARGV, 3 do
  local name, field = P .. ARGV[i], ARGV[i + 1]
  local purse = string.match(ARGV[i], '^job:') or string.match(ARGV[i], '^run:')
  if not purse or redis.call('EXISTS', name) == 1 then  -- it may have been forgotten meanwhile
    local value = redis.call('HGET', name, field)
    if value and not string.match(value, '^-?%d+$') then redis.call('HDEL', name, field) end
    redis.call('HINCRBY', name, field, ARGV[i + 2])
  end
end
return tostring(redis.call('HINCRBY', BASE, 'mended', 1))
