-- Extend a lease, and record the progress. ARGV: now, name, token, lease in ms, record ('': unchanged). Returns held,
-- cancelling, or lost: another claim holds, or the item has ended.
local name = ARGV[2]
if not holds(name, ARGV[3]) then return 'lost' end
put(name, 'held', 'leases', now + tonumber(ARGV[4]))
if ARGV[5] ~= '' then redis.call('HSET', item(name), 'record', ARGV[5]) end
return get(name, 'cancelled') and 'cancelling' or 'held'
