-- Whether the tenant could pay for one call to a model. ARGV: now, model, nano-dollars that it costs at the least
return admit(ARGV[2], tonumber(ARGV[3])) or {'admitted'}
