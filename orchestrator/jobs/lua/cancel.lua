-- Cancels a job: starts no new calls; calls in flight are still settled. ARGV: now, id
local id = ARGV[2]
local state = get(id, 'state')
if not state then return {'gone'} end
if state == 'cancelled' or state == 'cancelling' then return {state} end
if OVER[state] then return {'over', state} end
if not running(id) then
  finalize(id, 'cancelled')
  return {'cancelled'}
end
local units = redis.call('HGETALL', key(id, 'units'))
for i = 1, #units, 2 do
  local u = cjson.decode(units[i + 1])
  if u.s == 'waiting' then unit_done(id, units[i], u) end
end
set_state(id, 'cancelling')
return {'cancelling'}
