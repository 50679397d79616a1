-- A token bucket as one number: the time from which it would be full (GCRA).
-- KEYS[1]: its key. ARGV: now (0: the server's clock), microseconds of one token, size, 'wait' or 'try'
-- Returns the microseconds until the token may be used; 'try' takes no token that is not available yet.
local now = tonumber(ARGV[1]) * 1000
if now == 0 then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end
local token, size = tonumber(ARGV[2]), tonumber(ARGV[3])
-- if the clock was put back since that was written, it was put back as well
local at = KEYS[1] .. ':at'
local back = math.max(0, tonumber(redis.call('GET', at) or now) - now)
local full = math.max(now, tonumber(redis.call('GET', KEYS[1]) or '0') - back)
local wait = math.max(0, full + token - size * token - now)
if wait > 0 and ARGV[4] == 'try' then
  return string.format('%.0f', wait)
end
local ms = math.ceil((full + token - now) / 1000) + 1000
redis.call('SET', KEYS[1], string.format('%.0f', full + token), 'PX', ms)
redis.call('SET', at, string.format('%.0f', now), 'PX', ms)
return string.format('%.0f', wait)
