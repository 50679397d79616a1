-- Stores a partition's result. It counts once, however often it is delivered; the last one sends the reduce.
-- ARGV: now, id, index, token, extraction (JSON), '1' if the partition could not be read
local id, index = ARGV[2], ARGV[3]
local name = 'extract:' .. index
local u, why = held(id, name, tonumber(ARGV[4]))
if not u then return {why} end
unit_done(id, name, u)
redis.call('HSET', key(id, 'extractions'), index, ARGV[5])
redis.call('HINCRBY', key(id), ARGV[6] == '1' and 'unread' or 'read', 1)
local all, read, unread = get(id, 'partitions'), get(id, 'read'), get(id, 'unread')
event(id, 'partition', {partition = tonumber(index), failed = ARGV[6] == '1',
  read = tonumber(read), unread = tonumber(unread), partitions = tonumber(all)})
if get(id, 'state') == 'cancelling' then
  settle_cancel(id)
  return {'cancelled'}
end
if redis.call('HLEN', key(id, 'extractions')) < tonumber(all) then return {'noted'} end
dispatch(id, 'reduce', {t = 0})
set_state(id, 'reducing')
return {'reduce'}
