-- Checks whether an API key of the tenant is valid now. ARGV: now, id of the key
local found = redis.call('HGET', P .. 'keys', ARGV[2])
local expires = found and string.match(found, ':(%d*)$')
if not found or (expires ~= '' and tonumber(expires) <= now) then return 'gone' end
local disabled = redis.call('HGET', P .. 'tenant', 'disabled')
return disabled and disabled ~= '' and 'disabled' or 'live'
