-- Lands a row of a provider's batch after its attempt was settled: the call is done, wanted again, or has failed.
-- ARGV: now, batch, attempt, 'done', 'again' or 'failed', reason of the failure (JSON) or ''
local batch, attempt = P .. 'lane:batch:' .. ARGV[2], ARGV[3]
local raw = redis.call('HGET', batch .. ':rows', attempt)
if not raw then return 'unknown' end
redis.call('HDEL', batch .. ':rows', attempt)
redis.call('HINCRBY', batch, ARGV[4], 1)
local entry = cjson.decode(raw)
local id, k = entry.job, entry.key
count_lane(id, 'sent', -1)
local state, c = get(id, 'state'), lane_call(id, k)
if not c or c.a ~= attempt then return 'landed' end
c.a, c.t, c.n = nil, nil, c.n + 1
if ARGV[4] == 'done' or not state or OVER[state] or state == 'cancelling' then
  forget_lane_call(id, k)
elseif ARGV[4] == 'again' and c.n < c.x then
  put_lane_call(id, k, c)
  want(id, k)
else
  c.e = ARGV[5]
  put_lane_call(id, k, c)
end
wake_all(id, c)
return 'landed'
