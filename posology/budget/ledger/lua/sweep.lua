-- Settles reservations whose lease is over at their bounds. ARGV: now. Returns their ids.
return lose_expired()
