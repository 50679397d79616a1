-- Records that a budget is nearly spent, once for each limit and window, and queues the webhook messages.
-- ARGV: now, digest of limit and window, seconds for which this is remembered, content of the messages (JSON)
if not redis.call('SET', P .. 'warned:' .. ARGV[2], 1, 'NX', 'EX', ARGV[3]) then return 'known' end
local data = cjson.decode(ARGV[4])
announce('budget.nearly_spent', 'budget:' .. data.scope, function() return data end)
return 'warned'
