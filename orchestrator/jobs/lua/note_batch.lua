-- Records the progress of a provider's batch and the time of the next look, unless its state has changed.
-- ARGV: now, batch, expected state, ms until the next look, fields (JSON object of strings)
local batch = P .. 'lane:batch:' .. ARGV[2]
local state = redis.call('HGET', batch, 'state')
if state ~= ARGV[3] then return state or 'gone' end
local fields = cjson.decode(ARGV[5])
if fields.state == 'sent' then fields.sent = whole(now) end
for name, value in pairs(fields) do redis.call('HSET', batch, name, value) end
redis.call('ZADD', SENT, now + tonumber(ARGV[4]), ARGV[2])
return 'noted'
