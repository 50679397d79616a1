"""The caps at every instant, by what scripts did to the counters in Redis.

An instant is the end of a script: Redis runs nothing else meanwhile. Reservations and charges above a call's bound are
allowed for: a provider may bill more than it was asked for, and that is charged in full.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from evals.fire.checker.evidence import Finding, Kind, Record, Run
from evals.fire.checker.money import place_of

_SPENT, _RESERVED = "spent:", "reserved:"


@dataclass(kw_only=True, slots=True)
class Steps:
    """Work of the replay."""

    #: scripts that changed a counter
    steps: int = 0
    #: times that the counters were read as a whole
    snapshots: int = 0
    #: largest share of a cap that was spent and reserved
    peak: float = 0.0
    #: nano-dollars of the largest excess over a cap beyond what was billed above bounds
    overshoot: int = 0


@dataclass(kw_only=True, slots=True)
class _Tenant:
    name: str
    #: nano-dollars by scope: total, month, day
    caps: Mapping[str, int] = field(default_factory=dict)
    counters: Counter[str] = field(default_factory=Counter)
    #: whether the counters are known: after the first snapshot
    known: bool = False
    broken: bool = False

    def taken(self) -> dict[str, int]:
        """Return what is spent and reserved in each window, nano-dollars."""
        found: Counter[str] = Counter()
        for name, value in self.counters.items():
            what, _, window = name.partition(":")
            if what in ("spent", "reserved"):
                found[window] += value
        return dict(found)


def caps(run: Run, steps: Steps) -> Iterator[Finding]:
    """Replay every change of a counter."""
    tenants = {r["tenant"]: _Tenant(name=r["tenant"]) for r in run.of("tenant")}
    entries = defaultdict(list)
    for entry in run.ledger:
        entries[entry["tenant"]].append(entry)
    for record in run.monitor:
        tenant = tenants.get(record["tenant"])
        if tenant is None:
            continue
        if record["kind"] == "caps":
            tenant.caps = {**tenant.caps, **record["caps"]}
        elif record["kind"] == "snapshot":
            steps.snapshots += 1
            yield from _drift(tenant, record, entries[tenant.name])
            tenant.counters, tenant.known = Counter(record["counters"]), True
            tenant.caps = record["caps"]
            # after Redis was away, what was charged above bounds is in the ledger alone
            excess = _excess(_upto(entries[tenant.name], record["upto"]))
            yield from _held(tenant, record, steps, before={}, excess=excess)
        elif tenant.known:
            steps.steps += 1
            before = tenant.taken()
            tenant.counters.update(record["changes"])
            excess = dict.fromkeys(before.keys() | tenant.taken(), int(record.get("excess", 0)))
            yield from _held(tenant, record, steps, before=before, excess=excess)
    yield from _rest(run, tenants)


def _held(
    tenant: _Tenant,
    record: Record,
    steps: Steps,
    *,
    before: Mapping[str, int],
    excess: Mapping[str, int],
) -> Iterator[Finding]:
    """No window with a cap takes more than it, but by what was charged above bounds in this window since before."""
    for window, taken in tenant.taken().items():
        cap = tenant.caps.get(window.partition(":")[0])
        if not cap or tenant.broken:
            continue
        steps.peak = max(steps.peak, taken / cap)
        beyond = taken - max(cap, before.get(window, 0)) - excess.get(window, 0)
        if beyond > 0:
            steps.overshoot = max(steps.overshoot, beyond)
            tenant.broken = True
            detail = f"{tenant.name} {window}: {taken} of {cap} nano-dollars at {record['at']}"
            yield Finding(kind=Kind.OVER_CAP, detail=detail)


def _excess(entries: Iterable[Record]) -> Mapping[str, int]:
    """Nano-dollars that were charged above bounds, by window."""
    found: Counter[str] = Counter()
    for entry in entries:
        fields = entry["fields"]
        if "bound" in fields:
            for window in windows(fields["day"]):
                found[window] += max(0, int(fields["charged"]) - int(fields["bound"]))
    return found


def _upto(entries: Iterable[Record], place: str | None) -> Iterator[Record]:
    """Yield the entries up to a place; ``None``: the ledger was empty."""
    if place is not None:
        last = place_of({"place": place})
        yield from itertools.takewhile(lambda entry: place_of(entry) <= last, entries)


def _drift(tenant: _Tenant, record: Record, entries: list[Record]) -> Iterator[Finding]:
    """Counters are the sums of the entries up to the snapshot, and what was replayed until now."""
    sums: Counter[str] = Counter()
    for entry in _upto(entries, record["upto"]):
        for window in windows(entry["fields"]["day"]):
            sums[_RESERVED + window] += int(entry["fields"]["reserved"])
            sums[_SPENT + window] += int(entry["fields"]["spent"])
    for name in sorted({*sums, *record["counters"]}):
        if not name.startswith((_SPENT, _RESERVED)):
            continue
        told = int(record["counters"].get(name, 0))
        if told != sums[name]:
            detail = f"{tenant.name} {name} is {told}, its entries come to {sums[name]}, at {record['at']}"
            yield Finding(kind=Kind.DRIFT, detail=detail)
        if record.get("gapless") and tenant.known and told != tenant.counters[name]:
            detail = f"{tenant.name} {name} is {told}, its changes come to {tenant.counters[name]}, at {record['at']}"
            yield Finding(kind=Kind.DRIFT, detail=detail)


def windows(day: str) -> tuple[str, ...]:
    """Return the windows that a day's money counts in."""
    return f"day:{day}", f"month:{day[:7]}", "total"


def _rest(run: Run, tenants: Mapping[str, _Tenant]) -> Iterator[Finding]:
    """Nothing is reserved once every call has ended."""
    if not any(True for _ in run.of("drained")):
        return
    for tenant in tenants.values():
        left = {k: v for k, v in tenant.counters.items() if k.startswith(_RESERVED) and v}
        if left:
            detail = f"{tenant.name} after every call has ended: {left}"
            yield Finding(kind=Kind.LEAKED_RESERVATION, detail=detail)
