-- Ends a unit, and its job.
-- ARGV: now, id, unit, token, state (succeeded, failed or expired), payload (JSON), status of an answer or ''
local id, name = ARGV[2], ARGV[3]
local u, why = held(id, name, tonumber(ARGV[4]))
if not u then return {why} end
unit_done(id, name, u)
if get(id, 'state') == 'cancelling' then
  settle_cancel(id)
  return {'cancelled'}
end
finalize(id, ARGV[5], ARGV[5] == 'succeeded' and 'result' or 'error', ARGV[6], ARGV[7] ~= '' and ARGV[7] or nil)
return {'concluded'}
