-- Releases a reservation whose call was never sent. ARGV: now, id
return release(ARGV[2])
