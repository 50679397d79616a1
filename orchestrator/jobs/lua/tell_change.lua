-- Reports to the watchers of a succeeded job that evidence of its answer has changed, once for each change.
-- ARGV: now, id, field that marks the change as reported, the change (JSON)
local id = ARGV[2]
if get(id, 'state') ~= 'succeeded' then return 'gone' end
if redis.call('HSETNX', key(id), ARGV[3], now) == 0 then return 'known' end
local change = cjson.decode(ARGV[4])
event(id, 'evidence_changed', change)
announce('answer.affected', id, function()
  return {job = id, batch = get(id, 'batch'), passage = change.passage, kind = change.kind, source = change.source,
    by = change.by, date = change.date}
end)
weigh(id)
return 'told'
