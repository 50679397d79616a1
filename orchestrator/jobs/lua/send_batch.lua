-- Reserves the worst cases of wanted calls, and records their batch before it is created at the provider. A call without
-- room in the budget now stays wanted; a call that no limit allows has failed. These reservations have no lease: the process
-- that watches the batch settles them. ARGV: now, batch, its record (JSON object of strings), ms within which the caller
-- creates it, then of each call: its opening (JSON, with job), and its maximum cost in nano-dollars.
-- Returns the attempts to send, the refusal of a call that must wait (JSON) or '', the number of failed calls, and the
-- number of calls that are no longer wanted.
local batch = P .. 'lane:batch:' .. ARGV[2]
local told = redis.call('HGET', batch, 'waits')
if told then return {redis.call('HKEYS', batch .. ':rows'), told, 0, 0} end  -- this script ran before, and its reply was lost
local rows, waits, busy, failed, gone = {}, '', false, 0, 0
for i = 5, #ARGV, 2 do
  local entry = cjson.decode(ARGV[i])
  local id, k = entry.job, entry.key
  local state, c = get(id, 'state'), lane_call(id, k)
  if not state or OVER[state] or state == 'cancelling' or not c or c.a or c.e or now >= tonumber(get(id, 'deadline')) then
    unwant(id, k)
    gone = gone + 1
  elseif not busy then
    local u = unit(id, c.u)
    entry.call = c.c or tonumber(get(id, 'calls') or 0) + 1
    entry.attempt, entry.unit, entry.token = c.n + 1, c.u, u and u.t or 0
    local raw, ticket = cjson.encode(entry), id .. '|' .. c.u .. '|' .. k
    local reply = reserve({id = entry.id, nano = ARGV[i + 1], job = id, model = entry.model, stage = entry.stage,
      strategy = entry.strategy, ticket = ticket, batch = true}, raw)
    if reply[1] == 'reserved' then
      if not c.c then redis.call('HINCRBY', key(id), 'calls', 1) end
      redis.call('HSET', key(id, 'calls'), entry.id, raw)
      redis.call('HSET', batch .. ':rows', entry.id, raw)
      count_lane(id, 'sent', 1)
      event(id, 'sent', {stage = entry.stage, call = entry.call, attempt = entry.attempt})
      local of = get(id, 'batch')
      if of then redis.call('HSET', P .. 'batch:' .. of, 'lane_last', now) end
      unwant(id, k)
      c.c, c.a, c.t = entry.call, entry.id, now
      put_lane_call(id, k, c)
      rows[#rows + 1] = entry.id
    elseif reply[1] == 'busy' then
      leave(ticket, id)
      waits = cjson.encode(reply)
      -- the cap of one job does not limit other jobs
      busy = reply[2] ~= 'job'
    else
      c.e = cjson.encode({refused = reply, asked = ARGV[i + 1]})
      put_lane_call(id, k, c)
      unwant(id, k)
      wake_all(id, c)
      failed = failed + 1
    end
  end
end
if #rows > 0 then
  for name, value in pairs(cjson.decode(ARGV[3])) do redis.call('HSET', batch, name, value) end
  redis.call('HSET', batch, 'id', ARGV[2], 'state', 'creating', 'created', now, 'rows', #rows, 'waits', waits)
  redis.call('ZADD', SENT, now + tonumber(ARGV[4]), ARGV[2])
end
return {rows, waits, failed, gone}
