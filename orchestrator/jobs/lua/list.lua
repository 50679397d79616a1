-- Lists a tenant, by the server's clock. KEYS[1]: the list itself, not a tenant's prefix. ARGV: now, tenant
redis.call('ZADD', P, now, ARGV[2])
return 'listed'
