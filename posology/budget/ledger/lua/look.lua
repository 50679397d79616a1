-- Reads some keys and the end of the ledger at one instant. It is a script, since a full Redis refuses MULTI.
-- ARGV: now, commands (JSON: a list of [name, key below the prefix, …]).
-- Returns the place of the last entry or '', that of the last archived one or '', the number of repairs of counters, and
-- the replies.
local found = {}
for i, command in ipairs(cjson.decode(ARGV[2])) do
  local name, key = table.remove(command, 1), table.remove(command, 1)
  found[i] = redis.call(name, P .. key, unpack(command))
end
local last = redis.call('XREVRANGE', LEDGER, '+', '-', 'COUNT', 1)[1]
local base = redis.call('HMGET', MONEY .. ':base', 'upto', 'mended')
return {last and last[1] or '', base[1] or '', base[2] or '0', found}
