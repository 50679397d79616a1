-- Append rows to an item's list, but those that are there already. ARGV: now, name, token ('': the item is not offered yet),
-- number of rows before these, rows. Returns 1, or 0: the claim does not hold, or the list has fewer rows.
local name, token, before = ARGV[2], ARGV[3], tonumber(ARGV[4])
local list = P .. 'rows:' .. name
if token == '' then
  if get(name, 'state') then return 0 end
elseif not holds(name, token) then
  return 0
end
local there = redis.call('LLEN', list) - before
if there < 0 then return 0 end
local sum = tonumber(get(name, 'rows') or 0)
for i = 5 + there, #ARGV do
  redis.call('RPUSH', list, ARGV[i])
  sum = sum + #ARGV[i]
end
if token ~= '' then resize(name, 'rows', sum) end
return 1
