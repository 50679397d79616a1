"""``python -m orchestrator.ingest.uploads.process``: the ingesting process as it is configured."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from orchestrator.environment import prepare_process
from orchestrator.ingest.embedding import Payer
from orchestrator.ingest.live.fetching import fetch_into
from orchestrator.ingest.live.request import FETCH
from orchestrator.ingest.shards.processes import Spread
from orchestrator.ingest.uploads.counting import Bounds, count
from orchestrator.ingest.uploads.folder import Busy, Uploads
from orchestrator.ingest.uploads.service import Ingester, Watch
from orchestrator.ingest.writer import Target, open_writer
from orchestrator.logs.configuration import configure
from orchestrator.models import Models
from orchestrator.settings import Settings, load_settings
from orchestrator.tables.served.folder import Tables
from orchestrator.tables.served.reader import TableReader
from posology.corpus.live.fetch import FILES
from posology.corpus.live.forms import Asked, Journal
from posology.errors import ConfigurationError
from posology.index.build.ingest import ingest
from posology.index.build.report import IngestReport


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


def uploads_folder(settings: Settings) -> Path:
    """Return the configured folder of uploads.

    Raises:
        ConfigurationError: none is configured.
    """
    if settings.uploads is None:
        raise ConfigurationError(
            "POSOLOGY_UPLOADS is not set: set it to a folder that the API and this process share"
        )
    return Path(settings.uploads).expanduser()


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
        ConfigurationError: no folder of uploads is configured, or another process ingests its files.
    """
    prepare_process()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    folder = uploads_folder(settings)
    models = Models(settings.embedder, settings.embedding)
    work = Ingesting(settings=settings, models=models, spread=spread)
    try:
        with reading_tables(settings, folder, models, stop):
            Ingester(Uploads(folder), work, stop, retention=settings.retention).run()
    except Busy:
        raise ConfigurationError(
            f"another process already ingests the files of {folder}: run one at a time"
        ) from None


if __name__ == "__main__":
    loaded = load_settings()
    configure(loaded)
    serve(loaded)
