-- Settles reservations whose lease has ended at their bounds. ARGV: now. Returns their ids.
return lose_expired()
