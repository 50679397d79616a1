-- Reads hashes at one instant. A transaction would do the same, but a full Redis refuses to queue even reads.
local found = {}
for i, key in ipairs(KEYS) do
  found[i] = redis.call('HGETALL', key)
end
return found
