-- Takes the job that has waited longest, to be sent to the broker. Says 'more' where it met only such as are not to
-- be sent, e.g. a batch that was cancelled: a script holds up everybody else. ARGV: now
for _ = 1, 200 do
  local id = redis.call('LPOP', P .. 'waiting')
  if not id then return false end
  local u = get(id, 'state') == 'queued' and unit(id, 'answer')
  -- a job that was tried again may stand in the list twice
  if u and not redis.call('ZSCORE', unclaimed('answer'), member(id, 'answer')) then
    dispatch(id, 'answer', u)
    return member(id, 'answer')
  end
end
return 'more'
