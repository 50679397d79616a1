"""Writes attempts into a ledger by thousands, as reservations and settlements would: entries, counters and figures agree."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from redis.asyncio import Redis

from posology.budget.ledger.scripts import library
from posology.store import keys
from posology.store.scripts import Scripts

#: attempts that one run of the script writes: tenths of a second of Redis's time
_AT_ONCE = 5_000
#: attempts of a run
_RUN = 16
# Writes ARGV[2] attempts, numbered from ARGV[3] on, from the millisecond ARGV[4] on, ARGV[5] apart. ARGV[6]: the entries of
# one attempt that the others are like (JSON).
_FILL = """
local like, last, days = cjson.decode(ARGV[6]), nil, {}
local first, at, apart = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
for i = first, first + ARGV[2] - 1 do
  local ms = at + math.floor((i - first) * apart)
  local day = date(ms)
  for k, f in ipairs(like) do
    f.id, f.at, f.day, f.job = string.format('%032x', i), whole(ms), day, string.format('run_%028x', math.floor(i / RUN))
    local fields = {}
    for name, value in pairs(f) do fields[#fields + 1] = name; fields[#fields + 1] = value end
    redis.call('XADD', LEDGER, whole(ms) .. '-' .. whole(2 * i + k), unpack(fields))
    last = f
  end
  days[day] = (days[day] or 0) + 1
end
label(last.model, true)
for day, n in pairs(days) do
  local o = {day = day, job = '', stage = last.stage, strategy = last.strategy, tier = last.tier, label = last.label}
  count(o, 0, n * last.charged)
  figure(o, 'attempts', n)
  for what, name in pairs({nano = 'charged', input = 'input', output = 'output'}) do figure(o, what, n * last[name]) end
end
return redis.call('XLEN', LEDGER)
"""


async def fill_ledger(
    redis: Redis,
    tenant: str,
    attempts: int,
    like: list[Mapping[str, str]],
    *,
    first: int = 0,
    at: float,
    apart: float = 0.0,
) -> None:
    """Write settled attempts.

    Args:
        redis: the connection.
        tenant: name of the tenant.
        attempts: number of them; each is two entries.
        like: the two entries of one.
        first: number of the first; a ledger's numbers grow.
        at: POSIX milliseconds of the first; later than all entries of the ledger.
        apart: milliseconds from one to the next.
    """
    run = Scripts(redis, "", lambda text: f"{library()}local RUN = {_RUN}\n{text}")
    for done in range(0, attempts, _AT_ONCE):
        some = min(_AT_ONCE, attempts - done)
        start = [str(first + done), str(at + done * apart), str(apart)]
        await run(_FILL, keys.prefix(tenant), some, *start, json.dumps(like))


async def entries_of(redis: Redis, tenant: str) -> list[Mapping[str, str]]:
    """Return the first two entries of a tenant's ledger."""
    found: Any = await redis.xrange(f"{keys.prefix(tenant)}ledger", count=2)
    return [fields for _, fields in found]
