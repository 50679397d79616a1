-- Calls that are to go into a provider's batch now, in the order in which they came: none while few came lately.
-- None either while another worker collects, and for a while after a refusal: held.
-- ARGV: now, ms that a call waits for others, number of calls that do not wait, calls at most, ms for which no other worker
-- gets any.
-- Returns job, key and what is needed to send it (JSON) of each.
local first = redis.call('ZRANGE', WANTED, 0, 0, 'WITHSCORES')
if not first[1] or now < tonumber(redis.call('GET', P .. 'lane:hold') or 0) then return {} end
if redis.call('ZCARD', WANTED) < tonumber(ARGV[3]) and now - tonumber(first[2]) < tonumber(ARGV[2]) then return {} end
local found = {}
for _, m in ipairs(redis.call('ZRANGE', WANTED, 0, tonumber(ARGV[4]) - 1)) do
  local id, k = split(m)
  local plan = redis.call('HGET', key(id, 'lane:lines'), k)
  if plan then
    for _, x in ipairs({id, k, plan}) do found[#found + 1] = x end
  else
    redis.call('ZREM', WANTED, m)  -- its job is over
  end
end
if #found > 0 then hold(tonumber(ARGV[5])) end
return found
