"""Lists of prices that were in force one after the other, at the service and at the provider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evals.fire.checker.evidence import Record, Run


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A new list. From one time to the other, the service's processes and the provider may have either."""

    #: digests of the lists before and after
    lists: frozenset[str]
    #: POSIX times: the file was written, and the provider bills by it
    begun: float
    done: float


class Prices:
    """Every list of a run.

    Args:
        run: the records.
    """

    def __init__(self, run: Run) -> None:
        #: nano-dollars per token of input and output, by digest
        self._lists: dict[str, tuple[int, int]] = {}
        self._digests: dict[int, str] = {}
        self._changes: list[Change] = []
        #: in force, and the one that replaces it
        now, begins = "", True
        new: Record | None = None
        for record in run.records:
            kind = record["kind"]
            if kind == "prices":
                self._lists[record["digest"]] = record["input"], record["output"]
                self._digests[record["number"]] = record["digest"]
                new = record
            # a piece begins with a list at once, and may have been cut off in a change
            if new is not None and (begins or kind in ("priced", "piece")):
                lists = frozenset({now, new["digest"]})
                self._changes.append(Change(lists=lists, begun=new["at"], done=record["at"]))
                now, new = new["digest"], None
            begins = kind == "piece" or (begins and kind != "prices")

    def due(self, request: Record, entry: Mapping[str, str]) -> int | None:
        """Return what the ledger must charge for a request, nano-dollars; ``None``: the provider does not say.

        That is the provider's bill, unless the entry names another list, and both lists were in force while the
        request was under way. Then it is the price by the entry's list.

        Args:
            request: of the provider's books.
            entry: fields of the attempt's last entry.
        """
        billed: int | None = request["nano"]
        name = entry.get("prices", "").rpartition("overrides ")[2]
        theirs = self._digests.get(request.get("prices", -1))
        if billed is None or theirs is None or name not in self._lists or name == theirs:
            return billed
        if not {name, theirs} <= self._met(request):
            return billed
        price_in, price_out = self._lists[name]
        tokens_in, tokens_out = request["tokens"]
        return int((tokens_in * price_in + tokens_out * price_out) // request["share"])

    def _met(self, request: Record) -> frozenset[str]:
        """Lists of the changes that a request met. A batch is paid when its results are fetched, any time later."""
        late = request["played"] == "batch"
        return frozenset().union(
            *(
                change.lists
                for change in self._changes
                if request["arrived"] <= change.done and (late or request["ended"] >= change.begun)
            )
        )
