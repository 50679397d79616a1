-- Cancels a batch: no more rows are submitted for it. cancel.lua cancels its jobs, one by one. A batch whose rows have all
-- ended stays as it is. ARGV: now, id
local name = P .. 'batch:' .. ARGV[2]
if redis.call('HEXISTS', name, 'digest') == 0 then return {'gone'} end
local ended = tonumber(redis.call('HGET', name, 'rejected'))
for state in pairs(OVER) do
  ended = ended + tonumber(redis.call('HGET', name, 'state:' .. state) or 0)
end
if ended >= tonumber(redis.call('HGET', name, 'total')) then return {'over'} end
if redis.call('HSETNX', name, 'cancelled', now) == 1 then announce_batch(ARGV[2]) end
return {'cancelled'}
