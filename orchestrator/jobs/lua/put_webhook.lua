-- Creates or changes an endpoint of webhooks.
-- ARGV: now, id, the endpoint (JSON), the one that it replaces (JSON) or '', maximum number of endpoints
local known = redis.call('HGET', WEBHOOKS, ARGV[2]) or ''
if known == ARGV[3] then return 'put' end  -- the reply to this was lost
if known ~= ARGV[4] then return 'changed' end
if known == '' and redis.call('HLEN', WEBHOOKS) >= tonumber(ARGV[5]) then return 'full' end
redis.call('HSET', WEBHOOKS, ARGV[2], ARGV[3])
return 'put'
