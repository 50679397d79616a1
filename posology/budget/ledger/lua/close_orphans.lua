-- Closes orphaned reservations: restores each, and closes it as any other. ARGV: now, number of repairs at the time of the
-- audit, 'lose' (charge the bound) or 'release' (free it), then of each: its id, and the reservation (JSON).
-- Returns the number of repairs by now and the closed ids, or 'moved' if another repair came between.
local BASE, done = MONEY .. ':base', {}
if (redis.call('HGET', BASE, 'mended') or '0') ~= ARGV[2] then return 'moved' end
for i = 4, #ARGV, 2 do
  local id = ARGV[i]
  -- the reservation may have been made again since
  if redis.call('HEXISTS', OPEN, id) == 0 and redis.call('HEXISTS', LOST, id) == 0 then
    redis.call('HSET', OPEN, id, ARGV[i + 1])
    if ARGV[3] == 'release' then release(id) else lose(id) end
    done[#done + 1] = id
  end
end
-- another process that found the same reservations must not close them a second time
return {tostring(redis.call('HINCRBY', BASE, 'mended', #done > 0 and 1 or 0)), done}
