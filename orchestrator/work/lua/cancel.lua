-- Ask for the end of an item: its holder ends it, or the next one does at once. ARGV: now, name. Returns its state, or nothing.
local name = ARGV[2]
local state = get(name, 'state')
if not state or over(state) then return state end
redis.call('HSET', item(name), 'cancelled', '1')
redis.call('ZADD', P .. 'queue', 'XX', 0, name)
return state
