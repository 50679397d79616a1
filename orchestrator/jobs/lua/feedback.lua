-- Keeps what a user says of a succeeded job's answer, in place of what was said before, and lets a copy of the Q-table
-- that decided learn from it: counts and sums, in whole numbers, so that nothing is left of what is taken back.
-- ARGV: now, id, what is said (JSON), what a table learns of it (JSON: table, state, keep, score and shown, the last three
-- in millionths; or '')
local id = ARGV[2]
if get(id, 'state') ~= 'succeeded' then return 'gone' end  -- nothing comes after success but the end of the record

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
