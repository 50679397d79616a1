-- Opens an attempt before a model is called: checks the claim, reserves the worst case, and numbers the call. If the call
-- has a reply by now, such as a late one of a worker that was presumed dead, returns that instead.
-- ARGV: now, id, unit, token, opening (JSON), maximum cost in nano-dollars
local id, name = ARGV[2], ARGV[3]
local entry = cjson.decode(ARGV[5])
local known = redis.call('HGET', key(id, 'calls'), entry.id)  -- this opening was made before, and its reply was lost
local ticket = id .. '|' .. name .. '|' .. entry.key

-- Removes the attempt from the account, as it is not sent.
local function refuse(word, more)
  -- the end of the job may have closed it as lost meanwhile
  local last = redis.call('HGET', key(id, 'calls'), entry.id)
  if last then
    redis.call('HDEL', key(id, 'calls'), entry.id)
    if redis.call('SREM', key(id, 'open'), entry.id) == 0 then forget_loss(id, cjson.decode(last)) end
  end
  release(entry.id)
  leave(ticket, id)
  return {word, more}
end

local u, why = held(id, name, tonumber(ARGV[4]))
if not u then return refuse(why) end
if get(id, 'state') == 'cancelling' then return refuse('cancelled') end
if now >= tonumber(get(id, 'deadline')) then return refuse('expired') end
local reply = redis.call('HGET', key(id, 'memo'), entry.key)
if reply then return refuse('answered', reply) end
if known then return {'opened', cjson.decode(known).call} end
-- a call gets its number when it is sent, not while it waits for money
local first = type(entry.call) ~= 'number'
if first then entry.call = tonumber(get(id, 'calls') or 0) + 1 end
entry.unit, entry.token, entry.job = name, u.t, id
local raw = cjson.encode(entry)
local said = reserve({id = entry.id, nano = ARGV[6], job = id, model = entry.model, stage = entry.stage,
  strategy = entry.strategy, ticket = ticket}, raw)
if said[1] ~= 'reserved' then return said end
if first then redis.call('HINCRBY', key(id), 'calls', 1) end
redis.call('HSET', key(id, 'calls'), entry.id, raw)
redis.call('SADD', key(id, 'open'), entry.id)
return {'opened', entry.call}
