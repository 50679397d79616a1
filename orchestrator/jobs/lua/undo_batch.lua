-- Undoes a batch that was certainly not created: releases its reservations; its calls are wanted again, or have failed.
-- ARGV: now, batch, reason of the failure (JSON) or ''
local batch = P .. 'lane:batch:' .. ARGV[2]
local state = redis.call('HGET', batch, 'state')
if state ~= 'creating' then return state or 'gone' end
local rows = redis.call('HGETALL', batch .. ':rows')
for i = 1, #rows, 2 do
  local entry = cjson.decode(rows[i + 1])
  local id, k = entry.job, entry.key
  release(rows[i])
  redis.call('HDEL', key(id, 'calls'), rows[i])
  local state, c = get(id, 'state'), lane_call(id, k)
  count_lane(id, 'sent', -1)
  if c and c.a == rows[i] then
    c.a, c.t = nil, nil
    if not state or OVER[state] or state == 'cancelling' then
      forget_lane_call(id, k)
    else
      if ARGV[3] ~= '' then c.e = ARGV[3] else want(id, k) end
      put_lane_call(id, k, c)
    end
    wake_all(id, c)
  end
end
redis.call('DEL', batch, batch .. ':rows')
redis.call('ZREM', SENT, ARGV[2])
return 'undone'
