"""Batches of a stub provider: what they hold, when they end, and what goes wrong with them."""

from __future__ import annotations

import json
import random
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from posology.testing.provider.ledger import StubLedger
from posology.testing.provider.responses import respond
from posology.testing.provider.steps import Recorded, Reply, Step
from posology.types import Usage


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchFaults:
    """Faults of batches. Shares are between 0 and 1."""

    #: requests for its status, lists included, after which a batch ends; ``None``: it ends at the test's word
    polls: int | None = 1
    #: share of rows that the batch's expiry cuts off
    expired: float = 0.0
    #: share of rows that end with a 500
    errored: float = 0.0
    #: share of rows that are answered and billed, and whose line in the results is no JSON
    broken: float = 0.0
    #: share of rows whose result is sent twice
    doubled: float = 0.0
    #: share of rows that are answered although the batch is cancelled
    answered_when_cancelled: float = 0.5
    #: share of requests to create a batch that are obeyed, and whose reply is lost
    creates_lost: float = 0.0
    #: reads of each batch's results that fail, by turns with a 500 and within the file, before one succeeds
    reads_failed: int = 0
    #: share of batches whose results are lost for good, of those whose creation was confirmed: without results,
    #: nothing tells whose an Anthropic batch is
    results_lost: float = 0.0
    seed: int = 0

    def draw(self, *names: object) -> float:
        """Return a number in [0, 1), always the same for the same names."""
        return random.Random(":".join(map(str, (self.seed, *names)))).random()  # noqa: S311 - faults, not secrets


@dataclass(kw_only=True, slots=True)
class Result:
    """How a row of a batch ended."""

    custom_id: str
    #: ``succeeded``, ``errored``, ``expired`` or ``canceled``
    fate: str
    #: HTTP status and body of its reply
    code: int = 0
    body: Any = None
    #: whether its line is no JSON
    broken: bool = False


@dataclass(kw_only=True, slots=True)
class StubBatch:
    """A batch, as both providers keep it."""

    id: str
    provider: str
    #: POSIX seconds
    created: float
    #: path of the API that answers the rows
    path: str
    #: bodies by custom id
    rows: dict[str, Any]
    metadata: dict[str, str] = field(default_factory=dict)
    #: the uploaded file
    file: str | None = None
    #: why it was refused as a whole
    refused: str | None = None
    #: requests for its status so far
    polls: int = 0
    #: failed reads of its results so far
    reads: int = 0
    cancelled: bool = False
    #: POSIX seconds; ``None``: in progress
    ended: float | None = None
    #: in the order of the results file
    results: list[Result] = field(default_factory=list)
    #: usage of the rows that were answered, by custom id
    billed: dict[str, dict[str, int] | None] = field(default_factory=dict)
    #: whether the reply to its creation was sent
    confirmed: bool = True
    deleted: bool = False

    def count(self, fate: str) -> int:
        """Return the number of rows that ended in a way; a doubled result counts once."""
        return len({result.custom_id for result in self.results if result.fate == fate})


class BatchBook:
    """The batches and files of a stub provider, which outlive it.

    Give the same book, or another one with the same folder, to the next stub, and it knows all that this one knew.

    Args:
        answer: from a row, as a request, to its step: a ``Reply``, ``Vectors`` or ``Status``. ``X-Client-Request-Id``
            is its custom id.
        faults: what goes wrong.
        folder: keeps it all; ``None``: it is kept in this object alone.
    """

    def __init__(
        self,
        answer: Callable[[Recorded], Step] = lambda _: Reply(text="yes"),
        faults: BatchFaults = BatchFaults(),
        *,
        folder: Path | None = None,
    ) -> None:
        self._answer = answer
        self.faults = faults
        self._folder = folder
        self.lock = threading.RLock()
        #: by id, in order of their creation
        self.batches: dict[str, StubBatch] = {}
        #: by id, in order of their upload: names and contents
        self.files: dict[str, tuple[str, str]] = {}
        #: rows that were answered are billed here, at the batch price
        self.ledger = StubLedger()
        self._creates = 0
        for path in sorted(folder.glob("*.json")) if folder else ():
            self._load(json.loads(path.read_text(encoding="utf-8")))

    def create(
        self,
        provider: str,
        *,
        path: str,
        rows: Mapping[str, Any],
        file: str | None = None,
        metadata: Mapping[str, str] | None = None,
        refused: str | None = None,
    ) -> StubBatch:
        """Create a batch."""
        batch = StubBatch(
            id=f"{'batch' if provider == 'openai' else 'msgbatch'}_{secrets.token_hex(8)}",
            provider=provider,
            created=time.time(),
            path=path,
            rows=dict(rows),
            file=file,
            metadata=dict(metadata or {}),
            refused=refused,
        )
        self.batches[batch.id] = batch
        if refused is not None:
            batch.ended = time.time()
        self._save(batch)
        return batch

    def confirm(self, batch: StubBatch) -> bool:
        """Whether the reply to the request to create a batch is sent."""
        self._creates += 1
        batch.confirmed = self.faults.draw("create", self._creates) >= self.faults.creates_lost
        self._save(batch)
        return batch.confirmed

    def results_are_lost(self, batch: StubBatch) -> bool:
        """Whether the results of a batch are lost for good."""
        lost = self.faults.draw("results", batch.id) < self.faults.results_lost
        return lost and batch.confirmed

    def poll(self, batch: StubBatch) -> None:
        """Count a request for a batch's status, and end the batch if it is time."""
        batch.polls += 1
        due = self.faults.polls is not None and batch.polls >= self.faults.polls
        if batch.ended is None and (due or batch.cancelled):
            self.end(batch)

    def end(self, batch: StubBatch) -> None:
        """End a batch: answer its rows, and bill those."""
        with self.lock:
            for custom_id, body in batch.rows.items():
                batch.results.append(self._work(batch, custom_id, body))
            doubled = [
                result
                for result in batch.results
                if self.faults.draw("doubled", result.custom_id) < self.faults.doubled
            ]
            batch.results += doubled
            random.Random(batch.id).shuffle(batch.results)  # noqa: S311 - an order, no secret
            batch.ended = time.time()
            self._save(batch)

    def end_all(self) -> None:
        """End the batches that are in progress."""
        for batch in list(self.batches.values()):
            if batch.ended is None:
                self.end(batch)

    def cancel(self, batch: StubBatch) -> None:
        """Cancel a batch; it ends when it is asked for the next time."""
        batch.cancelled = True
        self._save(batch)

    def delete(self, batch: StubBatch) -> None:
        """Forget what a batch held and what was answered, but not what was billed."""
        batch.deleted = True
        batch.rows, batch.results = {}, []
        self._save(batch)

    def _work(self, batch: StubBatch, custom_id: str, body: Any) -> Result:
        faults = self.faults
        if batch.cancelled and faults.draw("cancel", custom_id) >= faults.answered_when_cancelled:
            return Result(custom_id=custom_id, fate="canceled")
        fate = faults.draw("fate", custom_id)
        if fate < faults.expired:
            return Result(custom_id=custom_id, fate="expired")
        headers = {"x-client-request-id": custom_id}
        step = self._answer(Recorded(path=batch.path, headers=headers, json=body))
        response = respond(step, provider=batch.provider, asked=body, request_id=f"req_{custom_id}")
        reply = json.loads(response.body)
        if fate < faults.expired + faults.errored or response.code != 200:
            error = {"error": {"message": "busy", "type": "server_error", "code": "server_error"}}
            failed = reply if response.code != 200 else error
            code = response.code if response.code != 200 else 500
            return Result(custom_id=custom_id, fate="errored", code=code or 500, body=failed)
        if response.finished:
            batch.billed[custom_id] = None if response.usage is None else asdict(response.usage)
            self._bill(batch, custom_id)
        broken = fate < faults.expired + faults.errored + faults.broken
        return Result(custom_id=custom_id, fate="succeeded", code=200, body=reply, broken=broken)

    def _bill(self, batch: StubBatch, custom_id: str) -> None:
        usage = batch.billed[custom_id]
        entry = self.ledger.arrive(
            request_id=f"req_{custom_id}",
            client_id=custom_id,
            provider=batch.provider,
            played="batch",
        )
        self.ledger.end(
            entry, finished=True, usage=None if usage is None else Usage(**usage), delivered=True
        )

    def _save(self, batch: StubBatch) -> None:
        if self._folder is None:
            return
        file = batch.file and [batch.file, *self.files.get(batch.file, ("", ""))]
        text = json.dumps({"batch": asdict(batch), "file": file})
        name = self._folder / f"{batch.created:017.6f}-{batch.id}.json"
        # whole or not at all: the stub may be killed
        unfinished = name.with_suffix(".part")
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(name)

    def _load(self, saved: dict[str, Any]) -> None:
        fields = saved["batch"]
        fields["results"] = [Result(**result) for result in fields["results"]]
        batch = StubBatch(**fields)
        self.batches[batch.id] = batch
        for custom_id in batch.billed:
            self._bill(batch, custom_id)
        if saved["file"]:
            name, *content = saved["file"]
            self.files[name] = (content[0], content[1])
