-- Repairs counters: adds the missing amounts, which stay the same while the tenant spends.
-- ARGV: now, number of repairs at the time of the audit, then of each counter: its key below the prefix, its field, and the
-- missing amount. Returns the number of repairs by now, or 'moved' if another repair came between.
local BASE = MONEY .. ':base'
if (redis.call('HGET', BASE, 'mended') or '0') ~= ARGV[2] then return 'moved' end
for i = 3, #ARGV, 3 do
  local name, field = P .. ARGV[i], ARGV[i + 1]
  local purse = string.match(ARGV[i], '^job:') or string.match(ARGV[i], '^run:')
  if not purse or redis.call('EXISTS', name) == 1 then  -- its record may have been deleted since
    local value = redis.call('HGET', name, field)
    if value and not string.match(value, '^-?%d+$') then redis.call('HDEL', name, field) end
    redis.call('HINCRBY', name, field, ARGV[i + 2])
  end
end
return tostring(redis.call('HINCRBY', BASE, 'mended', 1))
