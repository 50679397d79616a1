-- Stores a user's feedback on the answer of a succeeded job, and replaces earlier feedback. A copy of the Q-table that
-- decided learns from it: counts and sums are whole numbers, so replaced feedback leaves no trace.
-- ARGV: now, id, feedback (JSON), lesson for the table (JSON: table, state, keep, score and shown, the last three in
-- millionths; or '')
local id = ARGV[2]
if get(id, 'state') ~= 'succeeded' then return 'gone' end  -- a succeeded job does not change until its record is deleted

local function learn(raw, sign)
  if raw == '' then return end
  local cell = cjson.decode(raw)
  local copy = P .. 'qtable:' .. cell.table
  local name = string.format('%d:%d:', cell.state, cell.keep)
  redis.call('HINCRBY', copy, name .. 'count', sign)
  redis.call('HINCRBY', copy, name .. 'score', string.format('%d', sign * cell.score))
  redis.call('HINCRBY', copy, name .. 'shown', string.format('%d', sign * cell.shown))
end

learn(get(id, 'learned') or '', -1)
learn(ARGV[4], 1)
redis.call('HSET', key(id), 'feedback', ARGV[3], 'learned', ARGV[4], 'judged', now)
return 'kept'
