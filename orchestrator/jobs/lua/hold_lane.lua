-- ARGV: now, ms for which no call of the tenant goes into a batch
hold(tonumber(ARGV[2]))
return 'held'
