-- Drop items. ARGV: now, names. Returns the number of the others.
for i = 2, #ARGV do
  drop(ARGV[i])
end
return left()
