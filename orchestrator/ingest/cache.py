"""Indices of folders that a user asks without having ingested them: in the cache, found again by content."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from orchestrator.ingest.ingest import run_ingest
from orchestrator.ingest.writer import Target
from orchestrator.settings import Settings
from posology.corpus.folders import check, expand, lacking
from posology.corpus.pdf.scans import available
from posology.corpus.references.columns import GUESSED, Columns
from posology.errors import BadFile, ConfigurationError, InputError
from posology.index.build.report import IngestReport
from posology.index.embedders.paid.models import PROVIDER
from posology.index.schema import FORMAT, SPLITTER
from posology.version import __version__

#: indices that are kept, however long ago they were used
KEPT = 20
#: seconds since its last use in which an index is never removed: another process may read it
_IN_USE = 24 * 3_600.0
#: file of an index that holds all of its files
_COMPLETE = "complete"
#: file with what of its files could not be read, a JSON array of sentences
_UNREAD = "unread.json"
#: version of the readers; raise it when one reads the same file otherwise
_READERS = 5
#: unread files that a sentence names
_NAMED = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedIndex:
    """An index of given files."""

    place: Path
    #: ``None``: it was there already
    report: IngestReport | None
    #: what could not be read of the files, a sentence each; found again with the index
    unread: tuple[str, ...] = ()


def cached_index(
    paths: Sequence[Path],
    settings: Settings,
    *,
    columns: Columns = GUESSED,
    console: Console | None = None,
) -> CachedIndex:
    """Return the index of files, which is made unless files of the same names and content have one. Blocking.

    An interrupted ingest resumes at the next call. Of indices that were not used for a day, the :data:`KEPT` most
    recently used are kept.

    Args:
        paths: files and folders.
        settings: the configuration.
        columns: names of columns of tables.
        console: shows the progress of an ingest; ``None``: none is shown.

    Raises:
        InputError: a path cannot be read, or none of the files holds a readable record.
        ConfigurationError: no cache is configured, or vectors would be bought.
    """
    cache = settings.cache_folder
    if cache is None:
        raise ConfigurationError(
            "POSOLOGY_CACHE is off, so the files' index cannot be kept: run `posology ingest PATH --index DIR`"
        )
    if (settings.embedder or "").partition(":")[0] == PROVIDER:
        raise ConfigurationError(
            f"the embedder {settings.embedder} is paid, and `ask PATH` buys no vectors: run `posology ingest PATH`, "
            "which prints the cost first"
        )
    check(paths, columns=columns)
    folders = cache / "folders"
    place = folders / _key(paths, settings, columns)
    done = place / _COMPLETE
    report = None
    if done.exists():
        unread = _kept(place)
    else:
        target = Target(place=str(place / "index"))
        report = run_ingest(paths, settings, target, columns=columns, console=console)
        if not report.good:
            shutil.rmtree(place)
            first = next(iter((*report.bad_files, *report.bad_records)), None)
            why = f": {first}" if first is not None else ""
            raise InputError(f"none of the files holds a readable record{why}", files=report.files)
        unread = _unread(report)
        (place / _UNREAD).write_text(json.dumps(unread, ensure_ascii=False), encoding="utf-8")
    done.touch()
    _tidy(folders)
    # with their package they are read, and then the index is another one
    lacks = filter(None, map(lacking, paths))
    return CachedIndex(place=place / "index", report=report, unread=(*unread, *lacks))


def _unread(report: IngestReport) -> tuple[str, ...]:
    """Return what an ingest could not read, a sentence each; files by their names, since folders are renamed."""
    said = []
    if bad := sorted({Path(one.path).name for one in report.bad_files}):
        names = ", ".join(bad[:_NAMED])
        more = f", and {len(bad) - _NAMED:,} more" if len(bad) > _NAMED else ""
        count = len({one.path for one in report.bad_files})
        said.append(f"{count:,} of {report.files:,} files could not be read: {names}{more}")
    if report.bad:
        records = "record" if report.bad == 1 else "records"
        said.append(f"{report.bad:,} {records} could not be read")
    return tuple(said)


def _kept(place: Path) -> tuple[str, ...]:
    """Return what could not be read when an index was made; none where it was not written down."""
    try:
        return tuple(map(str, json.loads((place / _UNREAD).read_text(encoding="utf-8"))))
    except FileNotFoundError:
        return ()


def _key(paths: Sequence[Path], settings: Settings, columns: Columns) -> str:
    """Return a digest of the files' names and content, and of all that decides how they are indexed."""
    # another release may read more of the same files
    release = (FORMAT, SPLITTER, _READERS, __version__)
    # with its packages scanned pages are read
    recipe = (
        *release,
        available(),
        settings.embedder,
        settings.self_information,
        settings.token_codes,
    )
    digest = hashlib.sha256(repr((*recipe, columns.identity)).encode())
    for file in expand(paths):
        if isinstance(file, BadFile):
            continue
        with file.open("rb") as opened:
            content = hashlib.file_digest(opened, "sha256").digest()
        digest.update(repr((file.name, content)).encode())
    return digest.hexdigest()[:24]


def _tidy(folders: Path) -> None:
    """Remove the indices that were used longest ago."""
    used: list[tuple[float, Path]] = []
    for place in folders.iterdir():
        try:
            used.append(((place / _COMPLETE).stat().st_mtime, place))
        except FileNotFoundError:
            # an ingest runs there, or was interrupted
            used.append((place.stat().st_mtime, place))
    for at, place in sorted(used, reverse=True)[KEPT:]:
        if time.time() - at > _IN_USE:
            shutil.rmtree(place, ignore_errors=True)
