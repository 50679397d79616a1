-- Reserves the worst case of a call. ARGV: now, reservation (JSON: id, nano, job, model, stage, strategy, ticket, lease in
-- ms), the opening (JSON), cap of the run in nano-dollars or '', ms for which the run's counters are kept
local r = cjson.decode(ARGV[2])
if string.sub(r.job, 1, 4) ~= 'job_' then
  local name = purse(r.job)
  if redis.call('HSETNX', name, 'created', whole(now)) == 1 then cap_purse(name, ARGV[4]) end
  redis.call('PEXPIRE', name, ARGV[5])
end
return reserve(r, ARGV[3])
