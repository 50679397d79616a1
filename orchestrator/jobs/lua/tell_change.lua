-- Tells the watchers of a succeeded job that evidence of its answer has changed, once for each change.
-- ARGV: now, id, field that marks the change as told, the change (JSON)
local id = ARGV[2]
if get(id, 'state') ~= 'succeeded' then return 'gone' end
if redis.call('HSETNX', key(id), ARGV[3], now) == 0 then return 'known' end
event(id, 'evidence_changed', cjson.decode(ARGV[4]))
weigh(id)
return 'told'
