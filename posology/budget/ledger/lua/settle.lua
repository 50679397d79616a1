-- Settles a reservation. ARGV: now, id, outcome, cost in nano-dollars or '', tokens in, tokens out, the attempt (JSON)
return close(ARGV[2], 'settle', ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7])
