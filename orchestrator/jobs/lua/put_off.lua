-- Puts off wanted calls that cannot be sent now, so that they keep no others back. ARGV: now, ms, then job and key of each.
local ms = tonumber(ARGV[2])
for i = 3, #ARGV, 2 do
  local m = ARGV[i] .. '|' .. ARGV[i + 1]
  if redis.call('ZADD', WANTED, 'XX', 'CH', now + ms, m) == 1 then redis.call('SADD', PUT_OFF, m) end
end
redis.call('PEXPIRE', PUT_OFF, ms + 3600000)
return 'put off'
