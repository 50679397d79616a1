"""An operator's drill: pages of the runbook, tried on what a run under fire left.

A backup is made while blows fall, and restored beside the run. What would harm the run is tried on that copy: a lost
reservation, a Redis that is full. What reads alone is tried on the run itself, once all has ended.
"""

from __future__ import annotations

import asyncio
import csv
import json
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

import redis

from evals.fire.actors import Work
from evals.fire.journal import Journal
from evals.fire.operating import Operator
from evals.fire.world.prices import MODEL
from evals.fire.world.provider import BEYOND
from evals.fire.world.redis_server import RedisServer
from posology.testing.literature.stub import LiteratureStub

#: exit statuses of commands: something is wrong, a service does not answer, drift
_WRONG, _FAILED, _DRIFT = 1, 4, 14
#: tries of a command that meets a Redis which is away, and seconds between them
_TRIES, _PAUSE = 10, 3.0
#: seconds until a reservation counts as orphaned, and more
_OLD = 25 * 3_600
#: columns of the provider's account
_COLUMNS = ("request_id", "client_request_id", "model", "prompt_tokens", "completion_tokens")


class Page(StrEnum):
    """A section of the runbook."""

    FULL = "Redis is full"
    FAILED = "Jobs fail"
    PROVIDER = "The provider fails"
    BOOKS = "Counters differ, or reservations are orphaned"
    DRIFT = "Reconciliation finds drift"
    RESTORE = "Restore a backup"


class Drill:
    """Tries pages of the runbook; each command is a record, with the exit statuses that its page promises.

    Args:
        journal: takes the commands.
        operator: runs them.
        server: Redis of the run.
        folder: of the run.
        number: of the piece.
    """

    def __init__(
        self, journal: Journal, operator: Operator, server: RedisServer, folder: Path, number: int
    ) -> None:
        self._journal, self._operator, self._server, self._run = journal, operator, server, folder
        self._folder = folder / f"drill-{number:04d}"

    async def back_up(self, after: float) -> None:
        """Make a backup while blows fall, again until there is one in which money is reserved.

        Args:
            after: seconds until then.
        """
        await asyncio.sleep(after)
        status = None
        for _ in range(_TRIES):
            before = await self._reserved()
            made = await self._operator.command("backup", str(self._backups))
            status = 0 if status == 0 else made
            if made == 0 and before & await self._reserved():
                break
            await asyncio.sleep(_PAUSE)
        self._told(Page.RESTORE, ("backup",), status, {0})

    async def _reserved(self) -> set[str]:
        """Attempts that hold money just now; none, where Redis does not answer."""

        def read() -> set[str]:
            with suppress(redis.RedisError), self._server.client() as client:
                return {attempt for _, attempt in _reservations(client)}
            return set()

        return await asyncio.to_thread(read)

    async def retry(self, works: Sequence[Work]) -> None:
        """Retry every failed job, when the provider and Redis are well again."""
        for work in works:
            failed = [job for job, state in work.jobs.items() if state in ("failed", "expired")]
            if failed:
                arguments = ("jobs", "retry", "--all-failed")
                reply = await work.ways.command(*arguments, retries=failed)
                # jobs beyond their retention, and those of a batch that was cancelled, cannot be retried
                self._told(Page.FAILED, arguments, reply.status, {0, _WRONG})
                for job in failed:
                    await work.look(job)

    async def practise(self) -> None:
        """Try the other pages. Nothing of the run is changed."""
        await self._try(Page.BOOKS, "ledger", "verify", "--all")
        await self._reconcile()
        await self._live()
        await self._on_a_copy()

    async def _reconcile(self) -> None:
        """Compare the ledger with the provider's account, as it is and with a call that is not ours.

        Only a reply that was lost, and for which a dishonest provider bills more than its bound, may differ.
        """
        self._folder.mkdir(exist_ok=True)
        rows = list(_account(self._run))
        dishonest = {row["request_id"] for row in rows if int(row["completion_tokens"]) >= BEYOND}
        # larger than the bound of any call of ours whose cost is unknown
        tokens = str(sum(int(row["prompt_tokens"]) for row in rows))
        stranger = {**rows[0], "request_id": "req_of_another", "client_request_id": "", "prompt_tokens": tokens}  # fmt: skip
        for more, may in (([], {0, _DRIFT}), ([stranger], {_DRIFT})):
            path, report = self._folder / f"account-{len(more)}.csv", self._folder / f"drift-{len(more)}.json"  # fmt: skip
            _write(path, [*rows, *more])
            command = ("reconcile", str(path), "--provider", "openai", "--all", "--threshold", "0", "--out", str(report))  # fmt: skip
            if await self._try(Page.DRIFT, *command, may=may) not in may:
                continue
            named = {one["request_id"] for one in json.loads(report.read_text())["requests"]["mismatches"]}  # fmt: skip
            wrong = (named - dishonest) ^ {row["request_id"] for row in more}
            self._told(Page.DRIFT, ("reconcile names", *sorted(map(str, wrong))), len(wrong), {0})

    async def _live(self) -> None:
        """Ask literature services that answer, and one that does not."""
        for stub, status in (
            (LiteratureStub(per_second=None), 0),
            (LiteratureStub(faults={4: "redirect"}, per_second=None), _FAILED),
        ):
            with stub.serving() as url:
                services = {
                    "POSOLOGY_EUTILS_URL": f"{url}/eutils",
                    "POSOLOGY_EUROPEPMC_URL": f"{url}/europepmc",
                    "POSOLOGY_CLINICALTRIALS_URL": f"{url}/clinicaltrials",
                    "POSOLOGY_UNPAYWALL_URL": f"{url}/unpaywall",
                    "POSOLOGY_EMAIL": "operator@example.org",
                }
                await self._try(Page.PROVIDER, "doctor", "--live", may={status}, environment=services)  # fmt: skip

    async def _on_a_copy(self) -> None:
        """Restore the backup, and try there what changes a ledger."""
        backup = max(self._backups.glob("2*"), default=None)
        if backup is None:
            return
        folder = self._folder / "redis"
        folder.mkdir(parents=True)
        shutil.copy(backup / "redis.rdb", folder / "appendonly.aof")
        copy = RedisServer(folder, clock_of=self._server)
        await asyncio.to_thread(copy.start)
        try:
            await self._restored(copy, backup)
            await self._full(copy)
            await self._orphaned(copy)
        finally:
            await asyncio.to_thread(copy.stop)

    async def _restored(self, copy: RedisServer, backup: Path) -> None:
        await self._try(Page.RESTORE, "ledger", "verify", "--all", on=copy)
        if (backup / "index").is_dir():
            index = ("--index", str(backup / "index"), "--local")
            await self._try(Page.RESTORE, "search", "Does aspirin change the risk of stroke?", *index, on=copy)  # fmt: skip

    async def _full(self, copy: RedisServer) -> None:
        """Move every entry into files, while Redis takes nothing that grows."""
        archive = str(self._folder / "archive")
        with copy.client() as client:
            seconds, _ = client.time()
            tomorrow = datetime.fromtimestamp(seconds, UTC) + timedelta(days=1)
            client.config_set("maxmemory", 1)
        await self._try(Page.FULL, "ledger", "archive", "--before", f"{tomorrow:%Y-%m-%d}", "--out", archive, "--all", on=copy)  # fmt: skip
        await self._try(Page.FULL, "ledger", "verify", "--all", "--archive", archive, on=copy)
        with copy.client() as client:
            client.config_set("maxmemory", 0)

    async def _orphaned(self, copy: RedisServer) -> None:
        """Lose reservations behind the ledger's back, and charge them a day later."""
        archive = ("--archive", str(self._folder / "archive"))
        with copy.client() as client:
            lost = list(_reservations(client))
            for name, attempt in lost:
                client.hdel(name, attempt)
            now, _ = client.time()
            if not lost or not copy.shift(_OLD):
                self._journal.write("left out", what="orphaned reservations")
                return
            while client.time()[0] < now + _OLD:  # noqa: ASYNC110 - the clock announces nothing
                await asyncio.sleep(0.1)
        await self._try(Page.BOOKS, "ledger", "verify", "--all", *archive, on=copy, may={_WRONG})
        await self._try(Page.BOOKS, "ledger", "settle-orphans", "--all", *archive, on=copy)
        await self._try(Page.BOOKS, "ledger", "verify", "--all", *archive, on=copy)

    async def _try(
        self,
        page: Page,
        *arguments: str,
        may: Collection[int] = (0,),
        on: RedisServer | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> int | None:
        where = {"POSOLOGY_REDIS_URL": on.url} if on is not None else {}
        status = await self._operator.command(*arguments, environment={**where, **(environment or {})})  # fmt: skip
        self._told(page, arguments, status, may)
        return status

    def _told(
        self, page: Page, command: Sequence[str], status: int | None, may: Collection[int]
    ) -> None:
        self._journal.write("drill", page=page, command=" ".join(command), status=status, may=sorted(may))  # fmt: skip

    @property
    def _backups(self) -> Path:
        return self._folder / "backups"


def _reservations(client: redis.Redis) -> Iterator[tuple[str, str]]:
    """Yield the attempts of all tenants that hold money, each with the name of the hash that it is in."""
    for name in client.scan_iter("posology:{*}:money:open"):
        for attempt, raw in client.hgetall(name).items():
            if int(json.loads(raw)["nano"]):
                yield name, str(attempt)


def _account(folder: Path) -> Iterator[dict[str, str]]:
    """Yield what the provider billed, one row a request. Its own clock is not that of Redis: rows have no times."""
    model = MODEL.partition(":")[2]
    for path in sorted(folder.glob("books-*.jsonl")):
        for request in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            if request["finished"] and request["tokens"] is not None:
                values = (request["id"], request["client_id"], model, *request["tokens"])
                yield dict(zip(_COLUMNS, map(str, values), strict=True))


def _write(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, _COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
