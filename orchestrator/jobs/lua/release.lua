-- Requeues a unit that a worker does not finish. ARGV: now, id, unit, token, '1' if the requeue is counted
local id, name = ARGV[2], ARGV[3]
local u, why = held(id, name, tonumber(ARGV[4]))
if not u then return {why} end
lose_attempts(id, name, u.t)
if get(id, 'state') == 'cancelling' then
  unit_done(id, name, u)
  settle_cancel(id)
  return {'cancelled'}
end
step_out(id, name)
if ARGV[5] == '1' then u.r = (u.r or 0) + 1 end
dispatch(id, name, u)
-- the next sweep of a live worker sends it again
redis.call('ZADD', unclaimed(name), 0, member(id, name))
return {'released'}
