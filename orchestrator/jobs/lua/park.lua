-- Parks a unit that waits for budget, so that another unit can use its place in the worker. take.lua sends it again, in turn
-- with the other tenants' work. Its replies are kept, and replayed.
-- ARGV: now, id, unit, token, ms until it may be sent again, '1' if all of the tenant's units must wait as long,
-- additional ms for each parked unit of the tenant, maximum of these additional ms
local id, name, pause = ARGV[2], ARGV[3], tonumber(ARGV[5])
local u, why = held(id, name, tonumber(ARGV[4]))
if not u then return {why} end
lose_attempts(id, name, u.t)
if get(id, 'state') == 'cancelling' then
  unit_done(id, name, u)
  settle_cancel(id)
  return {'cancelled'}
end
pause = math.max(pause, math.min(tonumber(ARGV[7]) * redis.call('ZCARD', P .. 'parked'), tonumber(ARGV[8])))
step_out(id, name)
u.s = 'waiting'
put_unit(id, name, u)
redis.call('ZREM', P .. 'leases', member(id, name))
redis.call('ZADD', P .. 'parked', now + pause, member(id, name))
if ARGV[6] == '1' and pause > 0 then
  redis.call('SET', P .. 'parked:until', string.format('%.0f', now + pause), 'PX', pause)
end
return {'parked'}
