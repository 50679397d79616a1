-- Parks a unit until its calls, which go into a provider's batch, have their replies or have failed; records these calls.
-- ARGV: now, id, unit, token, maximum tries of each call, then of each call: its key, and the data to send it (JSON)
local id, name, tries = ARGV[2], ARGV[3], tonumber(ARGV[5])
local u, why = held(id, name, tonumber(ARGV[4]))
if not u then return {why} end
lose_attempts(id, name, u.t)
if get(id, 'state') == 'cancelling' then
  unit_done(id, name, u)
  settle_cancel(id)
  return {'cancelled'}
end
for i = 6, #ARGV, 2 do
  local k = ARGV[i]
  local c = lane_call(id, k)
  if redis.call('HEXISTS', key(id, 'memo'), k) == 0 and not (c and c.e) then
    -- a call that an earlier try of the job has sent is not sent twice
    if not (c and c.a) then want(id, k) end
    c = c or {n = 0}
    -- units of a job may want the same call; an earlier version wrote down one
    c.us = c.us or {c.u}
    c.u, c.x = name, tries
    local among = false
    for _, one in ipairs(c.us) do among = among or one == name end
    if not among then c.us[#c.us + 1] = name end
    put_lane_call(id, k, c)
    redis.call('HSET', key(id, 'lane:lines'), k, ARGV[i + 1])
  end
end
step_out(id, name)
u.s, u.lane = 'waiting', true
put_unit(id, name, u)
redis.call('ZREM', P .. 'leases', member(id, name))
wake(id, name)
return {'parked'}
