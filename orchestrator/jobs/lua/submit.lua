-- Creates a job, or finds the job of the idempotency key.
-- ARGV: now, id, record (JSON object of strings), idempotency key or '', digest, batch or '', model, minimum cost of a
-- first call in nano-dollars or '' (checked later), the job's own cap in nano-dollars or '', and the limits of tenants
-- without their own: waiting jobs, and MiB of records
local id, record, idem, digest, batch = ARGV[2], cjson.decode(ARGV[3]), ARGV[4], ARGV[5], ARGV[6]
if redis.call('EXISTS', key(id)) == 1 then
  return {'existing', id}  -- the same submission, repeated after a lost reply
end
if batch ~= '' and redis.call('EXISTS', P .. 'batch:' .. batch) == 0 then
  return {'gone', batch}  -- its submission took so long that the batch was deleted: nothing must be counted in it
end
if idem ~= '' then
  local known = redis.call('HMGET', P .. 'idem:' .. idem, 'job', 'digest')
  if known[1] then
    if known[2] ~= digest then return {'conflict', known[1]} end
    return {'existing', known[1]}
  end
end
if batch ~= '' and redis.call('HEXISTS', P .. 'batch:' .. batch, 'cancelled') == 1 then
  return {'cancelled', batch}
end
local refused = ARGV[8] ~= '' and admit(ARGV[7], tonumber(ARGV[8]))
if refused then return {'refused', unpack(refused)} end
local no_room = full(1, #ARGV[3], ARGV[10], ARGV[11])
if no_room then return no_room end
if idem ~= '' then redis.call('HSET', P .. 'idem:' .. idem, 'job', id, 'digest', digest) end
local fields = {'id', id, 'state', 'queued', 'created', now, 'token', 0, 'runs', 0, 'losses', 0,
  'known_nano', 0, 'unknown_costs', 0, 'digest', digest, 'idem', idem}
for name, value in pairs(record) do
  fields[#fields + 1] = name
  fields[#fields + 1] = value
end
redis.call('HSET', key(id), unpack(fields))
cap_purse(key(id), ARGV[9])
redis.call('HSET', key(id), 'deadline', now + tonumber(record.patience))
if batch ~= '' then
  redis.call('HSET', key(id), 'batch', batch)
  redis.call('HINCRBY', P .. 'batch:' .. batch, 'state:queued', 1)
  redis.call('HINCRBY', P .. 'batch:' .. batch, 'kept', 1)
  redis.call('HSET', P .. 'batch:' .. batch .. ':jobs', record.row, id)
end
redis.call('ZADD', P .. 'jobs', 0, id)
redis.call('ZADD', P .. 'state:queued', 0, id)
redis.call('ZADD', P .. 'deadlines', now + tonumber(record.patience), id)
put_unit(id, 'answer', {s = 'waiting', t = 0})
redis.call('RPUSH', P .. 'waiting', id)
event(id, 'state', {state = 'queued'})
-- Redis reserves 4 kB for the beginning of a stream, more than the rest of a waiting job takes; a copy takes what it holds
redis.call('COPY', key(id, 'events'), key(id, 'events:copy'))
redis.call('RENAME', key(id, 'events:copy'), key(id, 'events'))
weigh(id)
return {'created', id}
