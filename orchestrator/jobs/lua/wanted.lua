-- Returns the wanted calls that go into a provider's batch now, oldest first. Returns none while the oldest still waits for
-- others to share its batch, and none during a hold: while another worker collects, and for some time after a refusal.
-- ARGV: now, ms that a call waits for others, number of calls that are sent without a wait, maximum number of calls, ms of
-- the hold for other workers.
-- Returns job, key and the data to send it (JSON) of each call.
-- Those that are put off have a later time.
local first = redis.call('ZRANGEBYSCORE', WANTED, '-inf', now, 'WITHSCORES', 'LIMIT', 0, 1)
if not first[1] or now < tonumber(redis.call('GET', P .. 'lane:hold') or 0) then return {} end
local waits = now - tonumber(first[2]) < tonumber(ARGV[2]) and redis.call('SISMEMBER', PUT_OFF, first[1]) == 0
if waits and redis.call('ZCOUNT', WANTED, '-inf', now) < tonumber(ARGV[3]) then return {} end
local found = {}
for _, m in ipairs(redis.call('ZRANGEBYSCORE', WANTED, '-inf', now, 'LIMIT', 0, ARGV[4])) do
  local id, k = split(m)
  local plan = redis.call('HGET', key(id, 'lane:lines'), k)
  local until_ = plan and redis.call('GET', P .. 'lane:hold:' .. cjson.decode(plan).line.model)
  if until_ and now < tonumber(until_) then
    put_off(m, tonumber(until_))
  elseif plan then
    redis.call('SREM', PUT_OFF, m)
    for _, x in ipairs({id, k, plan}) do found[#found + 1] = x end
  else
    redis.call('SREM', PUT_OFF, m)
    redis.call('ZREM', WANTED, m)  -- its job is over
  end
end
if #found > 0 then hold(tonumber(ARGV[5])) end
return found
