#!/bin/sh
# Runs a command that starts Redis, after the append-only file in a folder ends with a whole transaction.
# Usage: redis.sh FOLDER redis-server ARGUMENT…
#
# A script's writes are one transaction of the file. After a full disk or a power failure the file may end within one. Redis
# (6.2 to 7) cuts off the last command alone: what is left of the transaction runs at the start after the next, together
# with the next transaction, and budgets are wrong. So Redis must refuse a torn file (aof-load-truncated no), and the
# transaction is cut off here, as a whole. Nothing of it was acknowledged, with appendfsync always.
folder=$1
shift
file=$folder/appendonly.aof
# since Redis 7 a folder of files, of which the last one is written
manifest=$folder/appendonlydir/appendonly.aof.manifest
if [ -s "$manifest" ]; then
  file=$folder/appendonlydir/$(sed -n 's/^file \(.*\) seq [0-9]* type i.*/\1/p' "$manifest" | tail -n 1)
fi
if [ -f "$file" ] && [ -s "$file" ]; then
  tools=$(mktemp -d) || exit
  # redis-server is its own checker: it goes by the name that it is called by
  ln -s "$(command -v "$1")" "$tools/redis-check-aof"
  whole=$("$tools/redis-check-aof" "$file" | sed -n 's/.*ok_up_to=\([0-9]*\).*/\1/p')
  rm -r "$tools"
  if [ -z "$whole" ]; then
    echo "$file could not be checked" >&2
  # a whole EXEC after it: what is torn is older. xx ends a line that has no end.
  elif { tail -c "+$((whole + 1))" "$file" | tr -d '\000'; echo xx; } | grep -qi '^EXEC.$'; then
    echo "$file has a torn transaction in its middle, at byte $whole: see 'Redis does not answer' in the runbook" >&2
  elif [ "$whole" -lt "$(wc -c <"$file")" ]; then
    echo "$file ended within a transaction: cut at byte $whole" >&2
    dd if=/dev/null of="$file" bs=1 seek="$whole" 2>/dev/null
  fi
fi
exec "$@"
