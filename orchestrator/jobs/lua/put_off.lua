-- Puts off wanted calls that cannot be sent now, so that they keep no others back, and the others of their model as they are
-- looked at. ARGV: now, ms, model, then job and key of each.
local ms = tonumber(ARGV[2])
if ms > 0 then redis.call('SET', P .. 'lane:hold:' .. ARGV[3], whole(now + ms), 'PX', ms) end
for i = 4, #ARGV, 2 do put_off(ARGV[i] .. '|' .. ARGV[i + 1], now + ms) end
return 'put off'
