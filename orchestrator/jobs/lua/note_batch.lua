-- Writes down how far a provider's batch is, and when to look at it next; nothing where it is in another state by now.
-- ARGV: now, batch, state that it has, ms until then, fields (JSON object of strings)
local batch = P .. 'lane:batch:' .. ARGV[2]
local state = redis.call('HGET', batch, 'state')
if state ~= ARGV[3] then return state or 'gone' end
local fields = cjson.decode(ARGV[5])
if fields.state == 'sent' then fields.sent = whole(now) end
for name, value in pairs(fields) do redis.call('HSET', batch, name, value) end
redis.call('ZADD', SENT, now + tonumber(ARGV[4]), ARGV[2])
return 'noted'
