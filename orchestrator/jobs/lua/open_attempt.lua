-- Before a model is called: may it be, and which number has the call?
-- ARGV: now, id, unit, token, opening (JSON)
local id, name = ARGV[2], ARGV[3]
local entry = cjson.decode(ARGV[5])
local known = redis.call('HGET', key(id, 'calls'), entry.id)
if known then return {'opened', cjson.decode(known).call} end  -- the reply to this very opening was lost
local u, why = held(id, name, tonumber(ARGV[4]))
if not u then return {why} end
if get(id, 'state') == 'cancelling' then return {'cancelled'} end
if now >= tonumber(get(id, 'deadline')) then return {'expired'} end
if type(entry.call) ~= 'number' then entry.call = redis.call('HINCRBY', key(id), 'calls', 1) end
entry.unit, entry.token = name, u.t
redis.call('HSET', key(id, 'calls'), entry.id, cjson.encode(entry))
redis.call('SADD', key(id, 'open'), entry.id)
return {'opened', entry.call}
