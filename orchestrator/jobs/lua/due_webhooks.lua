-- Returns the endpoints of all tenants with a message that is due. KEYS[1]: list of endpoints. ARGV: now
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now)
