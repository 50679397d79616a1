-- The endpoints of all tenants that are owed a message now. KEYS[1] is their list. ARGV: now
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now)
