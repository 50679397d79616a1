"""What a rebuild of an index from a folder would do: found by reading both, while nothing is written to the index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from posology.corpus.items import Record, sentence
from posology.errors import BadFile, SyncRefused
from posology.index.build.batches import Batch, chunks
from posology.index.build.progress import Mark, Progress
from posology.index.build.report import Tally
from posology.index.manifest import Applied, applied_files
from posology.index.store import Index
from posology.index.sync.arrivals import files_of, whole
from posology.index.sync.order import Plan, plan_rebuild
from posology.index.sync.report import Rebuilt, SyncProgress
from posology.index.sync.survey import Compared, Lack, Survey
from posology.index.view import View

#: share of what readers see that may go without anybody's saying so: a year's revision of PubMed takes out far less
MOST_REMOVED = 0.1
#: name of the survey in an index's folder
SURVEY = "rebuild.sqlite"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Prospect:
    """What a rebuild will do."""

    plan: Plan
    #: names of the files that wait, all of them, where any cannot be read; then nothing is to be done
    waiting: tuple[str, ...]
    #: the files that cannot be read
    broken: tuple[BadFile, ...]
    #: what there is to do; ``None`` where files wait
    rebuilt: Rebuilt | None
    #: what the files hold
    survey: Survey
    #: what the index lacks, by the file's place in the plan
    lacking: dict[int, Lack]

    def batches(self, size: int) -> Iterator[Batch]:
        """The records that are new or have changed, in the order of the files.

        Raises:
            SyncRefused: a file was changed meanwhile.
        """
        for number, lack in self.lacking.items():
            path = self.plan.files[number]
            for found in chunks(self.survey.wanted(number, path, lack), size):
                records = tuple(item for item in found if isinstance(item, Record))
                yield Batch(items=records, mark=_mark(path, records[-1].line))


@contextmanager
def prospect(
    folder: Path,
    index: Index | None,
    *,
    allow_gaps: bool = False,
    allow_removals: bool = False,
    progress: Callable[[SyncProgress], None] | None = None,
) -> Iterator[Prospect]:
    """What a rebuild will do, while this is open; nothing is written to the index. Blocking.

    What was read of the folder is kept in the index's folder for the rebuild itself, which removes it at its end; of an
    index on object storage it is read again.

    Args:
        folder: the files.
        index: whose lock the caller holds; ``None``: there is none yet.
        allow_gaps: whether files that the numbering wants may be missing.
        allow_removals: whether more than :data:`MOST_REMOVED` of what readers see may go.
        progress: called now and then while files are read.

    Raises:
        SyncRefused: the files are not those of one year, some are missing, or too much would go.
        BadFile: the folder cannot be read, or holds no file of a known format.
        IndexFault: what was read cannot be kept.
    """
    known = () if index is None else applied_files(index.connection, index.uri)
    todo = plan_rebuild(files_of(folder), known, allow_gaps=allow_gaps)
    tally = Tally()
    good, _ = whole(todo.files, {}, tally)
    with Survey.open(kept_in(index)) as survey:
        broken = list(tally.broken)
        if not broken:
            told = _telling(progress, len(good), tally)
            with readable(folder):
                wrong = survey.read(good, told)
            broken += [] if wrong is None else [wrong]
        if broken:
            names = tuple(file.name for file in todo.files)
            yield Prospect(
                plan=todo,
                waiting=names,
                broken=tuple(broken),
                rebuilt=None,
                survey=survey,
                lacking={},
            )
            return
        rebuilt = _compare(survey, index, known, {file.name for file in todo.files})
        if rebuilt.removed > MOST_REMOVED * rebuilt.published and not allow_removals:
            raise SyncRefused(
                f"{rebuilt.removed:,} of the {rebuilt.published:,} passages of the index are in none of the files, more "
                f"than {MOST_REMOVED:.0%}: see that the folder is complete. If they are to go, say --allow-removals",
                files=rebuilt.forgotten,
            )
        yield Prospect(
            plan=todo,
            waiting=(),
            broken=(),
            rebuilt=rebuilt,
            survey=survey,
            lacking=survey.lacking(),
        )


def kept_in(index: Index | None) -> Path | None:
    """Where a survey of what is to become of an index is kept; ``None``: nowhere."""
    folder = None if index is None else index.place.folder
    return None if folder is None else folder / SURVEY


def _compare(
    survey: Survey, index: Index | None, applied: Iterable[Applied], names: set[str]
) -> Rebuilt:
    passages = survey.passages
    if index is None:
        survey.compare((), note=True)
        return Rebuilt(
            passages=passages, new=passages, changed=0, unchanged=0, removed=0, published=0
        )
    newest, seen = index.newest(), index.view()
    now: Compared = survey.compare(_contents(newest), note=True)
    # what an earlier run took out and did not live to publish is lost to readers all the same
    same = newest.number == seen.number
    removed = now.gone if same else survey.compare(_contents(seen), note=False).gone
    known = {file.name for file in applied}
    ingested = [path for path in Progress(index.connection).paths if Path(path).name not in known]
    return Rebuilt(
        passages=passages,
        new=passages - now.same - now.changed,
        changed=now.changed,
        unchanged=now.same,
        removed=removed,
        published=seen.count(),
        forgotten=tuple(sorted(known - names)),
        ingested=tuple(path for path in ingested if Path(path).name not in names),
    )


def _contents(view: View) -> Iterator[tuple[str, str]]:
    for batch in view.scan(("id", "digest")):
        yield from zip(
            batch.column("id").to_pylist(), batch.column("digest").to_pylist(), strict=True
        )


def _telling(
    progress: Callable[[SyncProgress], None] | None, files: int, tally: Tally
) -> Callable[[int, Path, int, int], None]:
    def told(read: int, path: Path, place: int, records: int) -> None:
        if progress is not None:
            now = replace(tally.progress(_mark(path, place)), unchanged=records)
            progress(SyncProgress(files=files, applied=read, ingest=now, reading=True))

    return told


def _mark(path: Path, line: int) -> Mark:
    """A place in a file, to tell of; it is not kept."""
    return Mark(
        path=str(path.resolve()),
        size=0,
        mtime_ns=0,
        vectors="",
        line=line,
        good=0,
        bad=0,
        done=False,
    )


@contextmanager
def readable(folder: Path) -> Iterator[None]:
    """Raise what the operating system says of files in the block as a :class:`~posology.errors.BadFile`."""
    try:
        yield
    except OSError as error:
        raise BadFile(
            sentence(error.strerror or str(error)), path=str(error.filename or folder)
        ) from error
