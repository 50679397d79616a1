-- Remembers that a budget is nearly spent, once for a limit and its window, and tells the endpoints.
-- ARGV: now, digest of limit and window, seconds for which that is remembered, what they are told (JSON)
if not redis.call('SET', P .. 'warned:' .. ARGV[2], 1, 'NX', 'EX', ARGV[3]) then return 'known' end
local data = cjson.decode(ARGV[4])
announce('budget.nearly_spent', 'budget:' .. data.scope, function() return data end)
return 'warned'
