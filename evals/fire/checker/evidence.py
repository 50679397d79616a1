"""Records of a run as the checker reads them, and what it may find."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

Record = Mapping[str, Any]


class Kind(StrEnum):
    """A promise that was broken."""

    #: an accepted job or upload without an outcome
    LOST_JOB = "lost job"
    #: a job that ended twice, in different ways
    SECOND_OUTCOME = "second outcome"
    #: an outcome of a job that was not accepted before
    EARLY_OUTCOME = "outcome before acceptance"
    #: the same job showed two answers
    CHANGED_ANSWER = "changed answer"
    #: one idempotency key, two jobs
    DOUBLED_JOB = "doubled job"
    #: a reply that was paid and kept was paid again
    PAID_AGAIN = "paid again"
    #: one attempt closed twice in the ledger, or sent twice
    DOUBLE_CHARGE = "double charge"
    #: the provider billed a request that the ledger lacks
    MISSING_CHARGE = "missing charge"
    #: the ledger's cost is not the provider's
    WRONG_CHARGE = "wrong charge"
    #: the ledger knows the cost of a request that the provider did not bill
    INVENTED_CHARGE = "invented charge"
    #: spent and reserved amounts together exceeded a cap
    OVER_CAP = "cap exceeded"
    #: an amount that stays reserved after every call has ended
    LEAKED_RESERVATION = "leaked reservation"
    #: a counter that is not the sum of the ledger's entries
    DRIFT = "counter differs from the ledger"
    #: a quote that is not at its place in its passage
    WRONG_QUOTE = "wrong quote"
    #: a request, a job, an upload or a command that ended by an error which the service does not know
    INTERNAL_ERROR = "internal error"
    #: ``posology up`` ended by itself, although kills stay below its limit
    STACK_ENDED = "stack ended"
    #: a command of the runbook that ended otherwise than its page says
    RUNBOOK = "runbook"
    #: a word of one tenant in what another one, or the provider for another one, was sent
    LEAK = "cross-tenant leak"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One broken promise."""

    kind: Kind
    #: with ids and numbers
    detail: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """Everything that was recorded of a run."""

    #: requests, replies, tenants, documents, faults and samples, in order
    records: Sequence[Record]
    #: requests as the provider accounts for them
    books: Sequence[Record]
    #: entries of every tenant's ledger, in the ledger's order
    ledger: Sequence[Record]
    #: changes of counters by scripts, and snapshots, in Redis's order
    monitor: Sequence[Record]

    def of(self, kind: str) -> Iterator[Record]:
        """Yield the records of a kind."""
        return (record for record in self.records if record["kind"] == kind)


def load(folder: Path) -> Run:
    """Read the folder of a run. Pieces of it follow each other in the order of their names."""
    return Run(
        records=_lines(folder, "records"),
        books=_lines(folder, "books"),
        ledger=_lines(folder, "ledger"),
        monitor=_lines(folder, "monitor"),
    )


def _lines(folder: Path, name: str) -> list[Record]:
    found: list[Record] = []
    for path in sorted(folder.glob(f"{name}*.jsonl")):
        with path.open(encoding="utf-8") as file:
            # a line that a killed process began is no record
            found += [json.loads(line) for line in file if line.endswith("\n")]
    return found
