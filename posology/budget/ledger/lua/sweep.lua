-- Settles reservations whose lease is over at their bounds. ARGV: now. Returns their ids.
local ended = redis.call('ZRANGEBYSCORE', LEASES, '-inf', now, 'LIMIT', 0, 500)
for _, id in ipairs(ended) do
  if lose(id) == 'gone' then redis.call('ZREM', LEASES, id) end
end
forget_lost()
return ended
