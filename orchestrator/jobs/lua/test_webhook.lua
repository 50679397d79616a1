-- Queues a test message for one endpoint. ARGV: now, id. Returns the id of the message; '' if there is no such endpoint.
if redis.call('HEXISTS', WEBHOOKS, ARGV[2]) == 0 then return '' end
local made = message('webhook.test', 'test', {webhook = ARGV[2]})
post(ARGV[2], 'test', made)
return made.id
