-- Removes a ticket from the queues of the tenant and of the job. ARGV: now, ticket, job
leave(ARGV[2], ARGV[3])
return 'left'
