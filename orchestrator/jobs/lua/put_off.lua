-- Puts off wanted calls that cannot be sent now, so that they keep no others back. ARGV: now, ms, then job and key of each.
for i = 3, #ARGV, 2 do
  redis.call('ZADD', WANTED, 'XX', now + tonumber(ARGV[2]), ARGV[i] .. '|' .. ARGV[i + 1])
end
return 'put off'
