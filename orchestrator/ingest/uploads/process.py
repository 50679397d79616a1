"""``python -m orchestrator.ingest.uploads.process``: the ingesting process as it is configured."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
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
from orchestrator.ingest.uploads.uploads import INGESTS, KIND, MAX_ENDED, Uploads
from orchestrator.ingest.uploads.watch import Watch
from orchestrator.ingest.writer import Target, open_writer
from orchestrator.jobs.place import known_store
from orchestrator.logs.configuration import configure
from orchestrator.models import Models
from orchestrator.service import place_of
from orchestrator.settings import Settings, load_settings
from orchestrator.tables.served.folder import Tables
from orchestrator.tables.served.reader import TableReader
from orchestrator.work.files import Busy, open_files
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
class Keeper:
    """Keeps ingests in order while a process runs: those of dead processes return, and old ones are dropped."""

    uploads: Uploads
    settings: Settings
    #: name of this process
    process: str

    async def announce(self) -> None:
        """Record heartbeats of this process until cancelled."""
        work = self.uploads.work
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
        hours = 0.0
        while True:
            with _reported():
                await take_over(self.uploads)
                await self.sweep()
                if anyio.current_time() >= hours:
                    hours = anyio.current_time() + _TIDY
                    await self.uploads.work.tidy()
                    await self.clear(_LEFT)
            await anyio.sleep(self.settings.lease / 3)

    async def sweep(self) -> None:
        """Return ingests of dead processes to the queue, and forget old ones."""
        work, settings = self.uploads.work, self.settings
        rules = Sweeping(lease=settings.lease, retention=settings.retention, most=MAX_ENDED)
        for tenant in await work.groups():
            returned, _ = await work.sweep(tenant, rules)
            if returned:
                _log.warning("ingests requeued tenant=%s count=%d", tenant, returned)

    async def clear(self, seconds: float) -> None:
        """Remove bytes that are older than so many seconds and without an ingest that waits: a crash left them."""
        older = await to_thread.run_sync(lambda: list(self.uploads.files.older(seconds)))
        for name in older:
            kind, tenant, ingest = name.split("/")
            if kind == KIND:
                item = await self.uploads.work.get(tenant, ingest)
                if item is None or item.over:
                    await self.uploads.drop(tenant, ingest)


@contextmanager
def _reported() -> Iterator[None]:
    """Log what fails, to be done later: Redis, the disk or object storage is out of reach."""
    try:
        yield
    except (StoreUnavailable, IndexFault, OSError) as error:
        _log.warning("%s", error)


def uploads_place(settings: Settings) -> Place:
    """Return the configured folder of uploads, or its address on object storage.

    Raises:
        ConfigurationError: none is configured, or it is malformed.
    """
    if settings.uploads is None:
        raise ConfigurationError(
            "POSOLOGY_UPLOADS is not set: set it to a folder that the API and this process share"
        )
    return place_of(settings, settings.uploads)


@asynccontextmanager
async def open_uploads(settings: Settings, *, patience: int = TRIES) -> AsyncIterator[Uploads]:
    """Open the uploads of a service.

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
            yield Uploads(WorkStore(redis, url, INGESTS), files)
    finally:
        files.close()


async def run(
    settings: Settings, models: Models, spread: Spread | None, stop: threading.Event
) -> None:
    """Ingest uploaded files until the process must stop.

    Args:
        settings: the configuration.
        models: of this process.
        spread: workers that encode; ``None``: this process does.
        stop: set when the process must stop.

    Raises:
        ConfigurationError: no folder of uploads is configured.
    """
    work = Ingesting(settings=settings, models=models, spread=spread)
    process = keys.worker(os.getpid())
    async with open_uploads(settings) as uploads, anyio.create_task_group() as group:
        keeper = Keeper(uploads=uploads, settings=settings, process=process)
        group.start_soon(keeper.announce)
        group.start_soon(keeper.keep)
        await Ingester(uploads, work, stop, lease=settings.lease, process=process).run()
        group.cancel_scope.cancel()


@contextmanager
def reading_tables(
    settings: Settings, folder: Path, models: Models, stop: threading.Event
) -> Iterator[None]:
    """Read the tables of a folder in a thread during the block, until the process must stop.

    Args:
        settings: the configuration.
        folder: the folder of uploads.
        models: of this process.
        stop: set at the end of the block at the latest, and when another process reads them.

    Raises:
        Busy: another process reads them, at the end of the block.
    """
    tables = Tables(folder)
    reader = TableReader(tables=tables, settings=settings, models=models, stop=stop)
    with ThreadPoolExecutor(1, "tables") as thread:
        reading = thread.submit(reader.run)
        reading.add_done_callback(lambda _: stop.set())
        try:
            yield
        finally:
            stop.set()
    reading.result()


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
    models = Models(settings.embedder, settings.embedding)
    folder = uploads_place(settings).folder
    try:
        with (
            nullcontext()
            if folder is None
            else reading_tables(settings, folder.expanduser(), models, stop)
        ):
            anyio.run(run, settings, models, spread, stop)
    except Busy:
        raise ConfigurationError(
            f"another process already reads the tables of {folder}: run one at a time"
        ) from None


if __name__ == "__main__":
    loaded = load_settings()
    configure(loaded)
    serve(loaded)
