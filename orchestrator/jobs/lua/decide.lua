-- Records the decision; if it is for partitions, creates their units.
-- ARGV: now, id, token, decision (JSON), draft (JSON: data of the retrieval for the answer's output),
-- number of planned calls, then each partition (JSON)
local id, token = ARGV[2], tonumber(ARGV[3])
local u, why = held(id, 'answer', token)
if not u then return {why} end
if get(id, 'state') == 'cancelling' then
  unit_done(id, 'answer', u)
  settle_cancel(id)
  return {'cancelled'}
end
redis.call('HSET', key(id), 'decision', ARGV[4], 'calls_planned', ARGV[6])
local decision = cjson.decode(ARGV[4])
-- the second decision, if all steps of the first were refused; null is no table
if type(decision['then']) == 'table' then decision = decision['then'] end
event(id, 'decided', {strategy = decision.dose.strategy, partitions = #ARGV - 6, calls = tonumber(ARGV[6])})
local sent = {'decided'}
if #ARGV == 6 then return sent end
redis.call('HSET', key(id), 'draft', ARGV[5], 'partitions', #ARGV - 6, 'read', 0, 'unread', 0)
redis.call('DEL', key(id, 'context'), key(id, 'extractions'))
for i = 7, #ARGV do
  local index = tostring(i - 7)
  redis.call('HSET', key(id, 'context'), index, ARGV[i])
  dispatch(id, 'extract:' .. index, {t = 0})
  sent[#sent + 1] = 'extract:' .. index
end
unit_done(id, 'answer', u)
set_state(id, 'extracting')
return sent
