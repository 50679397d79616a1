"""Our side: the last state of each attempt in the ledger."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from posology.budget.books.archive.moving import described, read
from posology.budget.books.reader import START, Reader, order
from posology.budget.ledger.base import dollars
from posology.budget.reconcile.report import Measure, Number
from posology.types import Usage

#: maximum seconds between the clocks of a worker and of Redis: an entry is later than the start of its
#: attempt, by another clock
SKEW = 3_600.0
_USAGE = tuple(field.name for field in fields(Usage))


@dataclass(frozen=True, kw_only=True, slots=True)
class Ours:
    """One attempt, as the ledger knows it."""

    #: our id, which the provider got as well
    id: str
    tenant: str
    provider: str
    #: requested model, without the provider
    model: str
    #: POSIX seconds
    started: float
    #: POSIX seconds; for an orphaned attempt the time of the sweep
    ended: float
    #: ``None``: unknown, so possibly billed
    usage: Usage | None
    #: dollars; ``None``: unknown
    cost: Decimal | None
    #: maximum cost, dollars
    bound: Decimal
    #: maximum input tokens
    input_bound: int
    #: maximum output tokens
    max_tokens: int
    #: the provider's id; ``None``: no reply with it
    request_id: str | None

    @property
    def turned_away(self) -> bool:
        """Whether the usage is known to be zero, e.g. after a 429."""
        return self.usage == Usage()

    def figures(self) -> dict[Measure, tuple[Number, Number]]:
        """Return the known and the maximum value of each measure.

        A rejected attempt is not a request in a provider's account and has no figures.
        """
        if self.turned_away:
            return {}
        unknown = self.usage is None
        found: dict[Measure, tuple[Number, Number]] = {Measure.REQUESTS: (0 if unknown else 1, 1)}
        for measure, n in tokens(self.usage or Usage()).items():
            # the bound on input bounds each kind of input
            most = self.max_tokens if measure is Measure.OUTPUT else self.input_bound
            found[measure] = (0, most) if unknown else (n, n)
        cost = (Decimal(0), self.bound) if self.cost is None else (self.cost, self.cost)
        return found | {Measure.COST: cost}


def tokens(usage: Usage) -> dict[Measure, int]:
    """Return the tokens of an attempt, by the measures of both sides."""
    return {
        Measure.INPUT: usage.total_input,
        Measure.UNCACHED: usage.input,
        Measure.CACHE_READ: usage.cache_read,
        Measure.CACHE_WRITE: usage.cache_write_5m + usage.cache_write_1h,
        Measure.CACHE_WRITE_5M: usage.cache_write_5m,
        Measure.CACHE_WRITE_1H: usage.cache_write_1h,
        Measure.OUTPUT: usage.total_output,
    }


class Latest:
    """Yields the last state of each attempt, entry by entry."""

    def __init__(self, tenant: str) -> None:
        self._tenant = tenant
        self._lost: dict[str, Ours] = {}

    def __call__(self, entry: Mapping[str, str]) -> Ours | None:
        """Return an attempt that an entry settles for good; an orphaned one may still be corrected."""
        match entry.get("kind"):
            case "settle":
                return parse(entry, self._tenant)
            case "lose":
                self._lost[entry["id"]] = parse(entry, self._tenant)
            case "correct":
                self._lost.pop(entry["id"], None)
                if entry.get("outcome") != "released":
                    return parse(entry, self._tenant)
        return None

    def rest(self) -> Iterator[Ours]:
        """Return the orphaned attempts that were never corrected."""
        yield from self._lost.values()


def latest(entries: Iterable[Mapping[str, str]], *, tenant: str) -> Iterator[Ours]:
    """Yield one row for each attempt, from all entries of a ledger in order."""
    states = Latest(tenant)
    yield from filter(None, map(states, entries))
    yield from states.rest()


def parse(entry: Mapping[str, str], tenant: str) -> Ours:
    """Return the attempt of an entry other than a reservation."""
    attempt = json.loads(entry.get("entry") or "{}")
    provider, _, model = entry["model"].partition(":")
    at = int(entry["at"]) / 1000
    started, latency, usage = (attempt.get(name) for name in ("started", "latency", "usage"))
    cost = None
    if entry.get("known") == "1":
        exact = attempt.get("cost")
        # the counter's is rounded up to the next nano-dollar
        cost = dollars(entry["charged"]) if exact is None else Decimal(str(exact))
    return Ours(
        id=entry["id"],
        tenant=tenant,
        provider=provider.lower(),
        model=model.lower(),
        started=at if started is None else float(started),
        ended=at if started is None or latency is None else float(started) + float(latency),
        usage=None if usage is None else Usage(**{n: int(usage.get(n) or 0) for n in _USAGE}),
        cost=cost,
        bound=dollars(entry["bound"]),
        input_bound=int(attempt.get("input_bound") or 0),
        max_tokens=int(attempt.get("max_tokens") or 0),
        request_id=attempt.get("request_id") or None,
    )


async def attempts(
    reader: Reader, files: Sequence[Path] = (), *, since: float | None, notes: list[str]
) -> AsyncIterator[Ours]:
    """Yield the last state of each attempt of a tenant, from the archive's files and the ledger.

    Args:
        reader: of the ledger.
        files: of the archive; those of other tenants are ignored.
        since: POSIX seconds; attempts that were started before may be left out.
        notes: gets a line where entries of the time are in the archive and no file was given.

    Raises:
        BadFile: a file cannot be read, or is none of an archive, by its name or its content.
        StoreUnavailable: Redis is out of reach.
    """
    tenant, states = reader.tenant, Latest(reader.tenant)
    after = START if since is None else f"{max(0, int((since - SKEW) * 1000))}-0"
    moved = (await reader.page(after)).archived
    own = [file for path in files if (file := described(path, tenant))]
    if order(moved) > order(after) and not own:
        day = datetime.fromtimestamp(order(moved)[0] / 1000, UTC)
        notes.append(
            f"entries of {tenant} up to {day:%Y-%m-%d %H:%M} are in the archive: give its files "
            "with --archive"
        )
    for file in sorted(own, key=lambda file: order(file.first)):
        if order(file.last) <= order(after):
            continue
        for entry in read(file.path):
            # what an interrupted run has not taken out yet is in the ledger, too
            wanted = order(after) < order(entry.place) <= order(moved)
            if wanted and (state := states(entry.fields)):
                yield state
    async for entry in reader.entries(after):
        if state := states(entry.fields):
            yield state
    for state in states.rest():
        yield state
