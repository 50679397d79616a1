-- Checks whether the tenant could pay for one call to a model. ARGV: now, model, minimum cost in nano-dollars
return admit(ARGV[2], tonumber(ARGV[3])) or {'admitted'}
