"""``python -m orchestrator.ingest.uploads.process``: the ingesting process as it is configured."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio import to_thread

from orchestrator.environment import prepare_process
from orchestrator.ingest.embedding import Payer
from orchestrator.ingest.live.fetching import fetch_into
from orchestrator.ingest.live.request import FETCH
from orchestrator.ingest.shards.processes import Spread
from orchestrator.ingest.uploads.counting import Bounds, count
from orchestrator.ingest.uploads.service import Ingester
from orchestrator.ingest.uploads.takeover import take_over
from orchestrator.ingest.uploads.uploads import INGESTS, MAX_ENDED, Uploads
from orchestrator.ingest.uploads.uploads import KIND as INGEST_KIND
from orchestrator.ingest.uploads.watch import Watch
from orchestrator.ingest.writer import Target, open_writer
from orchestrator.jobs.place import known_store
from orchestrator.logs.configuration import configure
from orchestrator.models import Models
from orchestrator.service import place_of
from orchestrator.settings import Settings, load_settings
from orchestrator.tables.served.reader import TableReader
from orchestrator.tables.served.tables import KIND as TABLE_KIND
from orchestrator.tables.served.tables import MAX_KEPT, TABLES, Tables
from orchestrator.work.files import open_files
from orchestrator.work.items import Sweeping
from orchestrator.work.store import WorkStore
from posology.corpus.live.fetch import FILES
from posology.corpus.live.forms import Asked, Journal
from posology.errors import ConfigurationError, IndexFault, StoreUnavailable
from posology.index.build.ingest import ingest
from posology.index.build.report import IngestReport
from posology.index.places import Place
from posology.store import keys
from posology.store.connection import TRIES, connect

_log = logging.getLogger(__name__)
#: seconds between two looks for bytes without an ingest, and their age
_TIDY, _LEFT = 3_600.0, 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Ingesting:
    """Ingests into the configured index, with the configured models; what a fetch asks for is fetched first."""

    settings: Settings
    #: of this process: the encoder is loaded once, as an upload may be a single passage
    models: Models
    #: workers that encode; ``None``: this process does
    spread: Spread | None = None

    def __call__(self, path: Path, *, tenant: str, watch: Watch, last: bool) -> IngestReport:
        """See :class:`~orchestrator.ingest.uploads.service.Ingest`."""
        paths = self._fetched(path, watch) if path.name == FETCH else [path]
        watch.phase("loading the encoder")
        encoder = self.models.embedder()
        target = Target(encoder=encoder, payer=Payer(tenant=tenant), spread=self.spread)
        with open_writer(self.settings, target) as writer:
            total = watch.now.total
            # of a fetch that is resumed, more may be there
            if total is None or path.name == FETCH:
                watch.phase("counting records")
                total = count(paths, self._bounds(), watch.look)
                watch.count(total)
            return ingest(
                paths,
                writer.index,
                writer.source,
                progress=watch.committed,
                finish=last,
                total=total,
                row=watch.row,
                phase=watch.phase,
                once=True,
            )

    def _bounds(self) -> Bounds:
        given = self.settings
        return Bounds(
            mib=given.upload_unpacked_mib,
            records=given.upload_records,
            seconds=given.upload_seconds,
        )

    def _fetched(self, path: Path, watch: Watch) -> list[Path]:
        """Fetch what a request asks for, beside it, and return the files; an interrupted fetch resumes.

        Raises:
            FetchFailed: the service gave no usable reply.
            InputError: nothing was found.
        """
        watch.phase("fetching")
        asked = Asked.model_validate_json(path.read_bytes())

        def told(journal: Journal) -> None:
            watch.phase(f"fetching, {journal.records} records so far")

        # its name is that of the ingest
        folder = path.parent / watch.now.id
        found = anyio.run(lambda: fetch_into(self.settings, asked, folder, told=told))
        watch.fetched(found)
        return [folder / FILES / file.name for file in found.files]


@dataclass(frozen=True, kw_only=True, slots=True)
class Stores:
    """Uploads and tables, and the address of their Redis."""

    uploads: Uploads
    tables: Tables
    redis: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Keeper:
    """Keeps uploads and tables in order while a process runs: those of dead processes return, and old ones are dropped."""

    stores: Stores
    settings: Settings
    #: name of this process
    process: str

    async def announce(self) -> None:
        """Record heartbeats of this process until cancelled."""
        work = self.stores.uploads.work
        try:
            while True:
                with _reported():
                    await work.announce(self.process)
                await anyio.sleep(self.settings.lease / 3)
        finally:
            with anyio.move_on_after(1.0, shield=True), suppress(StoreUnavailable):
                await work.leave(self.process)

    async def keep(self) -> None:
        """Sweep until cancelled; another process may do so, too."""
        cleared = -_TIDY
        while True:
            with _reported():
                await take_over(self.stores.uploads, self.stores.tables)
                await self.sweep()
                if anyio.current_time() >= cleared + _TIDY:
                    cleared = anyio.current_time()
                    await self.clear(_LEFT)
            await anyio.sleep(self.settings.lease / 3)

    async def sweep(self) -> None:
        """Return what dead processes held to the queue, and forget what ended long ago."""
        for held, most in ((self.stores.uploads, MAX_ENDED), (self.stores.tables, MAX_KEPT)):
            settings = self.settings
            rules = Sweeping(lease=settings.lease, retention=settings.retention, most=most)
            for tenant in await held.work.groups():
                returned, dropped = await held.work.sweep(tenant, rules)
                if returned:
                    _log.warning("work requeued tenant=%s count=%d", tenant, returned)
                for name in dropped:
                    await held.drop(tenant, name)

    async def clear(self, seconds: float) -> None:
        """Remove bytes that are older than so many seconds and that nothing needs: a crash left them."""
        uploads, tables = self.stores.uploads, self.stores.tables
        older = await to_thread.run_sync(lambda: list(uploads.files.older(seconds)))
        for path in older:
            kind, tenant, name = path.split("/")
            if kind == INGEST_KIND:
                item = await uploads.work.get(tenant, name)
                if item is None or item.over:
                    await uploads.drop(tenant, name)
            elif kind == TABLE_KIND and await tables.work.get(tenant, name) is None:
                await tables.drop(tenant, name)
        for work in (uploads.work, tables.work):
            await work.tidy()


@contextmanager
def _reported() -> Iterator[None]:
    """Log what fails, to be done later: Redis, the disk or object storage is out of reach."""
    try:
        yield
    except (StoreUnavailable, IndexFault, OSError) as error:
        _log.warning("%s", error)
    except Exception:  # noqa: BLE001 - work goes on; what failed is tried again
        _log.exception("uploads and tables could not be kept in order")


def uploads_place(settings: Settings) -> Place:
    """Return the configured folder of uploads, or its address on object storage.

    Raises:
        ConfigurationError: none is configured, or it is malformed.
    """
    if settings.uploads is None:
        raise ConfigurationError(
            "POSOLOGY_UPLOADS is not set: set it to a folder or to an address in object storage that the API and this "
            "process share"
        )
    return place_of(settings, settings.uploads)


@asynccontextmanager
async def open_stores(settings: Settings, *, patience: int = TRIES) -> AsyncIterator[Stores]:
    """Open the uploads and tables of a service.

    Args:
        settings: the configuration.
        patience: tries of a command while Redis is out of reach.

    Raises:
        ConfigurationError: no folder of uploads is configured.
    """
    files = open_files(uploads_place(settings))
    url = known_store(settings) or settings.redis
    try:
        async with connect(url, tries=patience) as redis:
            yield Stores(
                uploads=Uploads(WorkStore(redis, url, INGESTS), files),
                tables=Tables(WorkStore(redis, url, TABLES), files),
                redis=url,
            )
    finally:
        files.close()


async def run(settings: Settings, spread: Spread | None, stop: threading.Event) -> None:
    """Ingest uploaded files, and read tables, until the process must stop.

    Args:
        settings: the configuration.
        spread: workers that encode; ``None``: this process does.
        stop: set when the process must stop.

    Raises:
        ConfigurationError: no folder of uploads is configured.
    """
    models = Models(settings.embedder, settings.embedding)
    work = Ingesting(settings=settings, models=models, spread=spread)
    process = keys.worker(os.getpid())
    async with open_stores(settings) as stores, anyio.create_task_group() as group:
        keeper = Keeper(stores=stores, settings=settings, process=process)
        reader = TableReader(
            tables=stores.tables, settings=settings, models=models, stop=stop, redis=stores.redis,
            process=process,
        )  # fmt: skip
        group.start_soon(keeper.announce)
        group.start_soon(keeper.keep)
        async with anyio.create_task_group() as works:
            works.start_soon(reader.run)
            await Ingester(stores.uploads, work, stop, lease=settings.lease, process=process).run()
        group.cancel_scope.cancel()


def serve(settings: Settings, spread: Spread | None = None) -> None:
    """Ingest uploaded files, and read tables, until SIGINT or SIGTERM; a file that is being read resumes at the next start. Blocking.

    Args:
        settings: the configuration.
        spread: workers that encode; ``None``: this process does.

    Raises:
        ConfigurationError: no folder of uploads is configured.
    """
    prepare_process()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    anyio.run(run, settings, spread, stop)


if __name__ == "__main__":
    loaded = load_settings()
    configure(loaded)
    serve(loaded)
