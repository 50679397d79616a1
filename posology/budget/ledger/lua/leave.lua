-- ARGV: now, ticket, job
leave(ARGV[2], ARGV[3])
return 'left'
