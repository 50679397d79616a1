"""One piece of a run: starts everything, lets tenants work under blows, waits for every end, exports the ledger."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from evals.fire.actors import Tenant, Work, drain
from evals.fire.blows import Striker
from evals.fire.drill import Drill
from evals.fire.journal import Journal, last_number
from evals.fire.memory import Processes, sample
from evals.fire.schedule import WEIGHTS, blows
from evals.fire.watch import Watch
from evals.fire.ways import Ways
from evals.fire.world.corpus import COUNT, document, write
from evals.fire.world.disks import Disk
from evals.fire.world.keeper import Keeper
from evals.fire.world.network import Network
from evals.fire.world.prices import MODEL, write_prices
from evals.fire.world.redis_server import RedisServer
from orchestrator.stack.ports import free_port
from posology.testing.models.encoder import save_tiny_encoder

#: limits of tenants; what runs out is raised now and then
TENANTS = {
    "ample": ("--total", "5", "--calls", "16", "--may-ingest"),
    "tight": ("--total", "0.01", "--job", "0.02"),
    "daily": ("--day", "0.3", "--month", "2", "--calls", "6"),
}
#: those of a steady run, whose load would change whenever a limit is reached, and at midnight
_STEADY = TENANTS | {
    "ample": ("--total", "1000", "--calls", "16", "--may-ingest"),
    "daily": ("--day", "1000", "--month", "1000", "--calls", "6"),
}
#: dollars by which the tight tenant's total is raised, and seconds between
_RAISE, _EVERY = 0.01, 20.0
#: seconds until a stack serves, about
_START = 60.0
#: seconds after the last blow for everything to end
_PATIENCE = 600.0
#: share of a piece after which a backup is made
_BACKUP = 0.7
#: days for which a steady run keeps ended jobs and replaced versions of the index: a quarter of an hour
_KEPT = 15 / 24 / 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A piece."""

    #: keeps the run
    folder: Path
    seed: int
    #: from 1
    number: int
    #: seconds of work
    seconds: float
    #: mean seconds between blows; ``None``: none falls
    every: float | None = 4.0
    #: of each stack
    workers: int = 2
    #: on the same Redis and index
    stacks: int = 1
    #: checkout of an earlier version: the last of several stacks runs its code, or the first worker of a single one;
    #: ``None``: all run this version
    before: Path | None = None
    #: jobs that end before the piece does, however long they take
    fewest: int = 0
    #: of blows
    kinds: frozenset[str] = frozenset(WEIGHTS)
    #: whether what is kept does not grow: retention is short, and uploads replace documents
    steady: bool = False

    @property
    def name(self) -> str:
        """Seed of the piece."""
        return f"{self.seed}-{self.number}"


def tenants(seed: int, *, steady: bool = False) -> list[Tenant]:
    """Return the tenants of a run."""
    found = []
    for name, limits in (_STEADY if steady else TENANTS).items():
        digest = hashlib.sha256(f"{seed}:{name}".encode()).hexdigest()
        found.append(Tenant(name=name, word=f"word{digest[:12]}", limits=limits))
    return found


async def run(plan: Plan) -> None:
    """Run a piece; what it saw is in the folder."""
    folder = plan.folder
    for name in ("log", "literature", "home"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    first = last_number(folder) + 1
    journal = Journal(folder / f"records-{plan.number:04d}.jsonl", first=first)
    async with AsyncExitStack() as stack:
        stack.callback(journal.close)
        journal.write("piece", seed=plan.seed, number=plan.number, seconds=plan.seconds, every=plan.every,
                      stacks=plan.stacks, before=plan.before, steady=plan.steady)  # fmt: skip
        disks = {name: Disk(folder / name) for name in ("index", "uploads")}
        for disk in disks.values():
            await asyncio.to_thread(disk.mount)
            stack.callback(disk.unmount)
        journal.write("prices", **write_prices(folder / "prices.toml", 0).record())
        server = RedisServer(folder / "redis")
        server.begin_before_midnight(_START + plan.seconds / 2)
        await asyncio.to_thread(server.start)
        stack.callback(server.stop)
        network = Network(server.port)
        await network.start()
        stack.push_async_callback(network.stop)
        provider = await stack.enter_async_context(_provider(plan))
        environment = _environment(plan, provider)
        some = tenants(plan.seed, steady=plan.steady)
        direct = environment | {"POSOLOGY_REDIS_URL": server.url}
        if plan.number == 1:
            await _begin(plan, journal, direct)
        keys = await _keys(plan, some, direct)
        for tenant in some:
            journal.write("tenant", tenant=tenant.name, word=tenant.word)
        watch = Watch(server.port, tuple(TENANTS), folder / f"monitor-{plan.number:04d}.jsonl")
        await asyncio.to_thread(watch.start)
        address = f"redis://127.0.0.1:{network.port}/0"
        keepers = [
            await stack.enter_async_context(_keeper(plan, number, address, environment, journal))
            for number in range(1, plan.stacks + 1)
        ]
        processes = Processes(lambda: [keeper.pid for keeper in keepers])
        striker = Striker(journal, processes, server, network, provider, folder, direct, disks)
        urls = [keeper.url for keeper in keepers]
        over = asyncio.Event()
        works = [
            Work(tenant, Ways(journal, tenant=tenant.name, key=keys[tenant.name], urls=urls, environment=direct),
                 journal, plan.name, over, striker.progress, steady=plan.steady)
            for tenant in some
        ]  # fmt: skip
        drill = Drill(journal, striker.operator, server, folder, plan.number)
        await _work(plan, works, striker, drill, journal, processes, server, over)
        await asyncio.to_thread(watch.close)
        await asyncio.to_thread(_export, server, folder, tuple(TENANTS))
        await drill.practise()


def _keeper(
    plan: Plan, number: int, redis: str, environment: dict[str, str], journal: Journal
) -> Keeper:
    """A stack of the run, numbered from 1."""
    name = "stack" if number == 1 else f"stack-{number}"
    options: dict[str, object] = {
        "folder": str(plan.folder / name), "redis_url": redis, "workers": plan.workers, "concurrency": 8,
        "port": free_port("127.0.0.1"), "index": str(plan.folder / "index"), "overrides": environment,
        "worker_overrides": {}, "wholly_before": plan.stacks > 1,
        "before": str(plan.before) if plan.before and number == plan.stacks else None,
        # one process ingests what is uploaded to any API
        "uploads": number == 1,
    }  # fmt: skip
    return Keeper(options, plan.folder / "log" / f"{name}.log", journal)


async def _work(
    plan: Plan,
    works: list[Work],
    striker: Striker,
    drill: Drill,
    journal: Journal,
    processes: Processes,
    server: RedisServer,
    over: asyncio.Event,
) -> None:
    """Let tenants work for the time of the piece, and wait for all ends."""
    sampling = asyncio.create_task(
        sample(journal, processes, server, plan.folder / "index", tuple(TENANTS))
    )
    raising = asyncio.create_task(_raise(plan, striker))
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work.run())
            if plan.every is not None:
                group.create_task(
                    striker.run(blows(plan.name, plan.seconds, plan.every, plan.kinds), over)
                )
            group.create_task(drill.back_up(_BACKUP * plan.seconds))
            await asyncio.sleep(plan.seconds)
            await _enough(works, plan.fewest)
            over.set()
        raising.cancel()
        await striker.weather("fair")
        journal.write("healed")
        ended = await asyncio.gather(*(drain(work, _PATIENCE) for work in works))
        await drill.retry(works)
        ended += await asyncio.gather(*(drain(work, _PATIENCE) for work in works))
        if all(ended) and await _at_rest(server):
            journal.write("drained")
    finally:
        sampling.cancel()
        raising.cancel()
        for work in works:
            await work.ways.close()


async def _enough(works: list[Work], fewest: int) -> None:
    """Wait until some number of jobs have ended."""
    while True:
        if sum(work.ended for work in works) >= fewest:
            return
        await asyncio.sleep(0.2)


async def _at_rest(server: RedisServer) -> bool:
    """Wait until no attempt is open: a cancelled job's call in flight, and a batch at the provider, settle later."""
    deadline = asyncio.get_running_loop().time() + _PATIENCE

    def open_() -> int:
        with server.client() as client:
            return sum(int(client.hlen(f"posology:{{{name}}}:money:open")) for name in TENANTS)

    while asyncio.get_running_loop().time() < deadline:
        if await asyncio.to_thread(open_) == 0:
            return True
        await asyncio.sleep(1.0)
    return False


async def _raise(plan: Plan, striker: Striker) -> None:
    """Raise the tight tenant's total now and then: it has run out by then."""
    dollars = 0.01 + plan.number
    while True:
        await asyncio.sleep(_EVERY)
        dollars += _RAISE
        await striker.operator.command("tenants", "set", "tight", "--total", f"{dollars:.4f}")


def _environment(plan: Plan, provider: str) -> dict[str, str]:
    folder = plan.folder
    encoder = folder / "encoder" / "model"
    if not encoder.exists():
        save_tiny_encoder(encoder.parent)
    kept = {"POSOLOGY_RETENTION_DAYS": str(_KEPT), "POSOLOGY_KEEP_VERSIONS": str(_KEPT)}
    return {
        **(kept if plan.steady else {}),
        "POSOLOGY_CONFIG": "off",
        "POSOLOGY_HOME": str(folder / "home"),
        "POSOLOGY_INDEX": str(folder / "index"),
        "POSOLOGY_EMBEDDER": str(encoder),
        "POSOLOGY_EMBEDDER_THREADS": "1",
        "POSOLOGY_TOKEN_CODES": "false",
        "POSOLOGY_UPLOADS": str(folder / "uploads"),
        "POSOLOGY_AUTH": "keys",
        "POSOLOGY_MODEL": MODEL,
        "POSOLOGY_PRICES": str(folder / "prices.toml"),
        "POSOLOGY_SUPPORT": "off",
        "POSOLOGY_CALL_TIMEOUT": "15",
        # the provider is on this machine, and not slow
        "POSOLOGY_MIN_TOKENS_PER_SECOND": "10000",
        "POSOLOGY_LEASE": "5",
        "POSOLOGY_BATCH_WAIT": "2",
        "POSOLOGY_BATCH_ROWS": "20",
        "POSOLOGY_BATCH_POLL": "2",
        "POSOLOGY_BATCH_LEASE": "10",
        "OPENAI_API_KEY": "stub",
        "OPENAI_BASE_URL": f"{provider}/v1",
    }


@asynccontextmanager
async def _provider(plan: Plan) -> AsyncIterator[str]:
    command = [
        sys.executable, "-m", "evals.fire.world.provider", "--folder", str(plan.folder / "batches"),
        "--books", str(plan.folder / f"books-{plan.number:04d}.jsonl"), "--seed", str(plan.seed),
    ]  # fmt: skip
    # begun before anything else runs on this loop
    with subprocess.Popen(  # noqa: ASYNC220
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield (await asyncio.to_thread(process.stdout.readline)).strip()
        finally:
            process.terminate()


async def _begin(plan: Plan, journal: Journal, environment: dict[str, str]) -> None:
    """Make the index."""
    documents = [document(number, 1) for number in range(COUNT)]
    for one in documents:
        journal.write("document", id=one.id, text=one.text)
    literature = plan.folder / "literature"
    write(literature / "docs-0001.jsonl", documents)
    await _posology(plan, environment, "sync", str(literature))


async def _keys(plan: Plan, some: list[Tenant], environment: dict[str, str]) -> dict[str, str]:
    """Create the tenants, or rotate their keys where they exist."""
    found = {}
    for tenant in some:
        make = ("create", tenant.name, *tenant.limits) if plan.number == 1 else ("rotate-key", tenant.name)  # fmt: skip
        found[tenant.name] = (await _posology(plan, environment, "tenants", *make)).strip()
    return found


async def _posology(plan: Plan, environment: dict[str, str], *arguments: str) -> str:
    with (plan.folder / "log" / "commands.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).with_name("posology")), *arguments,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=log,
            env={**os.environ, **environment},
        )  # fmt: skip
        out, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(
            f"posology {arguments[0]} ended with {process.returncode}: {plan.folder}/log"
        )
    return out.decode()


def _export(server: RedisServer, folder: Path, names: tuple[str, ...]) -> None:
    """Write every entry of every ledger, in order, as ``posology ledger archive`` would."""
    path = folder / "ledger.jsonl"
    with path.with_suffix(".part").open("w", encoding="utf-8") as file, server.client() as client:
        for tenant in names:
            after = "-"
            while page := client.xrange(f"posology:{{{tenant}}}:ledger", min=after, count=500):
                for place, fields in page:
                    if "entry" in fields:
                        fields["prices"] = json.loads(fields.pop("entry"))["prices"]
                    file.write(
                        json.dumps({"tenant": tenant, "place": place, "fields": fields}) + "\n"
                    )
                after = f"({page[-1][0]}"
    path.with_suffix(".part").replace(path)
