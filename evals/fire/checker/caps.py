"""The caps at every instant, by what scripts did to the counters in Redis.

An instant is the end of a script: Redis runs nothing else meanwhile. Reservations and charges above a call's bound are
allowed for: a provider may bill more than it was asked for, and that is charged in full.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
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
    #: charged above bounds so far
    excess: int = 0
    #: whether the counters are known: after the first snapshot
    known: bool = False
    broken: bool = False


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
        elif tenant.known:
            steps.steps += 1
            tenant.counters.update(record["changes"])
            tenant.excess += record.get("excess", 0)
        yield from _held(tenant, record, steps)
    yield from _rest(run, tenants)


def _held(tenant: _Tenant, record: Record, steps: Steps) -> Iterator[Finding]:
    """No counter is below zero, and no window above its cap."""
    for name, value in tenant.counters.items():
        if not name.startswith(_SPENT) or tenant.broken:
            continue
        window = name.removeprefix(_SPENT)
        cap = tenant.caps.get(window.partition(":")[0])
        taken = value + tenant.counters[_RESERVED + window]
        if not cap:
            continue
        steps.peak = max(steps.peak, taken / cap)
        if taken > cap + tenant.excess:
            steps.overshoot = max(steps.overshoot, taken - cap - tenant.excess)
            tenant.broken = True
            detail = f"{tenant.name} {window}: {taken} of {cap} nano-dollars at {record['at']}"
            yield Finding(kind=Kind.OVER_CAP, detail=detail)


def _drift(tenant: _Tenant, record: Record, entries: list[Record]) -> Iterator[Finding]:
    """Counters are the sums of the entries up to the snapshot, and what was replayed until now."""
    upto = record["upto"]
    sums: Counter[str] = Counter()
    for entry in entries:
        if upto is None or place_of(entry) > place_of({"place": upto}):
            break
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
