"""The ledger against the provider's books, attempt by attempt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from evals.fire.checker.evidence import Finding, Kind, Record, Run
from evals.fire.checker.prices import Prices

#: kinds of entries that close a reservation
_CLOSES = ("settle", "lose", "release")


@dataclass(kw_only=True, slots=True)
class Sums:
    """Totals over all attempts; amounts in nano-dollars."""

    attempts: int = 0
    #: requests that the provider billed, and their sum
    billed: int = 0
    due: int = 0
    #: charged by the ledger
    charged: int = 0
    #: attempts of unknown cost that the provider billed, and what it billed and the ledger charged for them
    billed_unknown: int = 0
    billed_unknown_due: int = 0
    billed_unknown_charged: int = 0
    #: attempts of unknown cost that it did not bill, and what the ledger charged for them
    unbilled_unknown: int = 0
    unbilled_unknown_charged: int = 0
    #: attempts of known cost that a change of prices met, and what was charged for them beyond what was billed
    repriced: int = 0
    repriced_charged: int = 0
    #: attempts above their bounds, and the excess
    over: int = 0
    excess: int = 0


@dataclass(kw_only=True, slots=True)
class Attempt:
    """Entries of one attempt in the ledger, in order."""

    id: str
    tenant: str
    entries: list[Record] = field(default_factory=list)

    @property
    def charged(self) -> int:
        """Nano-dollars."""
        return sum(int(entry["fields"]["spent"]) for entry in self.entries)

    @property
    def known(self) -> bool:
        """Whether the last entry knows the cost."""
        return bool(self.entries[-1]["fields"].get("known") == "1")

    @property
    def kinds(self) -> list[str]:
        """Kinds of its entries."""
        return [entry["fields"]["kind"] for entry in self.entries]


def attempts(ledger: Sequence[Record]) -> dict[str, Attempt]:
    """Return the attempts of all tenants by their ids."""
    found: dict[str, Attempt] = {}
    for entry in ledger:
        name = entry["fields"]["id"]
        found.setdefault(name, Attempt(id=name, tenant=entry["tenant"])).entries.append(entry)
    return found


def money(run: Run, sums: Sums) -> Iterator[Finding]:
    """Compare every attempt with the books, and add up."""
    ours, theirs, prices = attempts(run.ledger), _books(run.books), Prices(run)
    for name, attempt in ours.items():
        sums.attempts += 1
        sums.charged += attempt.charged
        yield from _closed(attempt)
        yield from _compared(attempt, theirs.get(name, ()), prices, sums)
    for name, requests in theirs.items():
        billed = [request for request in requests if request["finished"]]
        if len(billed) > 1:
            detail = f"the provider billed attempt {name} {len(billed)} times"
            yield Finding(kind=Kind.DOUBLE_CHARGE, detail=detail)
        if billed and name not in ours:
            detail = f"the provider billed attempt {name}, {billed[0]['nano']} nano-dollars"
            yield Finding(kind=Kind.MISSING_CHARGE, detail=detail)
        sums.billed += len(billed)
        sums.due += sum(request["nano"] or 0 for request in billed)
    yield from _paid_again(ours, run.books)


def _books(books: Sequence[Record]) -> Mapping[str, list[Record]]:
    """Requests by attempt. A provider that was restarted repeats what it billed before, by the same id."""
    found: dict[str, dict[str, Record]] = defaultdict(dict)
    for request in books:
        found[str(request["client_id"])][request["id"]] = request
    return {name: list(requests.values()) for name, requests in found.items()}


def _closed(attempt: Attempt) -> Iterator[Finding]:
    kinds = attempt.kinds
    closes = sum(kind in _CLOSES for kind in kinds)
    if kinds.count("reserve") > 1 or closes > 1 or kinds.count("correct") > kinds.count("lose"):
        detail = f"attempt {attempt.id} of {attempt.tenant}: {', '.join(kinds)}"
        yield Finding(kind=Kind.DOUBLE_CHARGE, detail=detail)
    elif closes == 0:
        detail = f"attempt {attempt.id} of {attempt.tenant} was reserved and never closed"
        yield Finding(kind=Kind.LEAKED_RESERVATION, detail=detail)


def _compared(
    attempt: Attempt, requests: Sequence[Record], prices: Prices, sums: Sums
) -> Iterator[Finding]:
    billed = next((request for request in requests if request["finished"]), None)
    charged, last = attempt.charged, attempt.entries[-1]["fields"]
    bound = int(last.get("bound", charged))
    if charged > bound:
        sums.over += 1
        sums.excess += charged - bound
    if billed is None:
        if attempt.known and charged:
            detail = f"attempt {attempt.id} was not billed, and {charged} nano-dollars are charged as its cost"
            yield Finding(kind=Kind.INVENTED_CHARGE, detail=detail)
        elif charged:
            sums.unbilled_unknown += 1
            sums.unbilled_unknown_charged += charged
        return
    due = prices.due(billed, last)
    if not attempt.known:
        sums.billed_unknown += 1
        sums.billed_unknown_due += due or 0
        sums.billed_unknown_charged += charged
        wrong = due is not None and charged < due <= bound
    else:
        wrong = charged != due
        if due != billed["nano"]:
            sums.repriced += 1
            sums.repriced_charged += charged - billed["nano"]
    if wrong:
        detail = f"attempt {attempt.id} was billed {due} nano-dollars and charged {charged}"
        yield Finding(kind=Kind.WRONG_CHARGE, detail=detail)


def _paid_again(ours: Mapping[str, Attempt], books: Sequence[Record]) -> Iterator[Finding]:
    """A job's call whose good reply is in the ledger is not opened again, in the order of the ledger."""
    #: what a job asked of the provider → attempts; another job may ask the same, and pays
    same: dict[tuple[str, str], list[Attempt]] = defaultdict(list)
    for request in {request["client_id"]: request for request in books}.values():
        if request["digest"] and (attempt := ours.get(str(request["client_id"]))):
            same[attempt.entries[0]["fields"].get("job", ""), request["digest"]].append(attempt)
    for (_, digest), group in same.items():
        kept = min((place for attempt in group if (place := _kept(attempt))), default=None)
        for attempt in group:
            if kept is not None and place_of(attempt.entries[0]) > kept:
                detail = f"attempt {attempt.id} asked again what was paid: request {digest}"
                yield Finding(kind=Kind.PAID_AGAIN, detail=detail)


def _kept(attempt: Attempt) -> tuple[int, int] | None:
    """Place where a good reply came into the ledger."""
    for entry in attempt.entries:
        fields = entry["fields"]
        if fields.get("outcome") == "ok" and fields["kind"] in ("settle", "correct"):
            return place_of(entry)
    return None


def place_of(entry: Record) -> tuple[int, int]:
    """Return the place of an entry in its ledger."""
    at, _, number = entry["place"].partition("-")
    return int(at), int(number)
