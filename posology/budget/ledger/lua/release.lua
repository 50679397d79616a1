-- ARGV: now, id
return release(ARGV[2])
