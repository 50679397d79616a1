-- Ends a provider's batch, if all of its rows have landed. ARGV: now, batch, ms for which its record is kept
local batch = P .. 'lane:batch:' .. ARGV[2]
if redis.call('HLEN', batch .. ':rows') > 0 then return 'open' end
redis.call('ZREM', SENT, ARGV[2])
if redis.call('EXISTS', batch) == 0 then return 'gone' end
redis.call('HSET', batch, 'state', 'ended', 'ended', now)
redis.call('PEXPIRE', batch, ARGV[3])
return 'ended'
