-- Ends orphaned reservations: each is put back, and closed as any other. ARGV: now, how often counters were put right when
-- they were found, 'lose' (charge the bound) or 'release' (free it), then of each: its id, and the reservation (JSON).
-- Returns how often they were put right by now, and the ids that were closed; or 'moved'.
local BASE, done = MONEY .. ':base', {}
if (redis.call('HGET', BASE, 'mended') or '0') ~= ARGV[2] then return 'moved' end
for i = 4, #ARGV, 2 do
  local id = ARGV[i]
  -- the reservation may have been repeated meanwhile
  if redis.call('HEXISTS', OPEN, id) == 0 and redis.call('HEXISTS', LOST, id) == 0 then
    redis.call('HSET', OPEN, id, ARGV[i + 1])
    if ARGV[3] == 'release' then release(id) else lose(id) end
    done[#done + 1] = id
  end
end
-- another process that found the same ones before must not close them a second time
return {tostring(redis.call('HINCRBY', BASE, 'mended', #done > 0 and 1 or 0)), done}
