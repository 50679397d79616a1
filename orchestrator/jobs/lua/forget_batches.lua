-- Forgets batches none of whose jobs is kept any more: a job may be tried again at any time while it is, so
-- that no time can be told in advance. ARGV: now, batches at most, ms until the next look at the others
local forgotten = 0
for _, id in ipairs(redis.call('ZRANGEBYSCORE', P .. 'batches', '-inf', now, 'LIMIT', 0, ARGV[2])) do
  local name = P .. 'batch:' .. id
  local kept = false
  for _, job in ipairs(redis.call('HVALS', name .. ':jobs')) do
    if redis.call('EXISTS', key(job)) == 1 then
      kept = true
      break
    end
  end
  if kept then
    redis.call('ZADD', P .. 'batches', now + tonumber(ARGV[3]), id)
  else
    redis.call('DEL', name, name .. ':jobs', name .. ':rejected', name .. ':ids')
    redis.call('ZREM', P .. 'batches', id)
    forgotten = forgotten + 1
  end
end
return forgotten
