-- Before a model is called: may it be, and which number has the call?
-- ARGV: now, id, unit, token, opening (JSON)
local id, name = ARGV[2], ARGV[3]
local entry = cjson.decode(ARGV[5])
local known = redis.call('HGET', key(id, 'calls'), entry.id)  -- the reply to this very opening was lost

-- It is not sent, so nothing of it may stay in the account.
local function refuse(word)
  if known then
    redis.call('HDEL', key(id, 'calls'), entry.id)
    if redis.call('SREM', key(id, 'open'), entry.id) == 0 then forget_loss(id, cjson.decode(known)) end
  end
  return {word}
end

local u, why = held(id, name, tonumber(ARGV[4]))
if not u then return refuse(why) end
if get(id, 'state') == 'cancelling' then return refuse('cancelled') end
if now >= tonumber(get(id, 'deadline')) then return refuse('expired') end
if known then return {'opened', cjson.decode(known).call} end
if type(entry.call) ~= 'number' then entry.call = redis.call('HINCRBY', key(id), 'calls', 1) end
entry.unit, entry.token = name, u.t
redis.call('HSET', key(id, 'calls'), entry.id, cjson.encode(entry))
redis.call('SADD', key(id, 'open'), entry.id)
return {'opened', entry.call}
