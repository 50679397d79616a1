-- Extends the leases of a process. ARGV: now, lease in ms, then job, unit, token of each.
-- Returns one word a unit: ok, cancelling, over, superseded or gone.
local said = {}
for i = 3, #ARGV, 3 do
  local id, name = ARGV[i], ARGV[i + 1]
  local state, u = get(id, 'state'), unit(id, name)
  if not state then
    said[#said + 1] = 'gone'
  elseif not u or u.s ~= 'running' or u.t ~= tonumber(ARGV[i + 2]) then
    said[#said + 1] = 'superseded'
  else
    redis.call('ZADD', P .. 'leases', now + tonumber(ARGV[2]), member(id, name))
    said[#said + 1] = OVER[state] and 'over' or (state == 'cancelling' and 'cancelling' or 'ok')
  end
end
return said
