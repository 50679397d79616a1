"""Prospect of a rebuild: what it will do, found by reading folder and index, without writing to the index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from posology.corpus.items import Record
from posology.errors import BadFile, SyncRefused
from posology.index.build.batches import Batch, chunks
from posology.index.build.progress import Mark, Progress
from posology.index.build.report import Tally
from posology.index.manifest import Applied, applied_files
from posology.index.store import Index
from posology.index.sync.arrivals import files_of, readable, whole
from posology.index.sync.order import Plan, plan_rebuild
from posology.index.sync.rebuilt import Rebuilt
from posology.index.sync.report import SyncProgress
from posology.index.sync.survey import Compared, Lack, Survey
from posology.index.view import View

#: share of the published passages that a rebuild may remove unasked: a year's revision of PubMed removes far less
MOST_REMOVED = 0.1
#: file name of the survey in an index's folder
SURVEY = "rebuild.sqlite"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Prospect:
    """Plan of a rebuild."""

    plan: Plan
    #: names of all files, if any cannot be read: then nothing is done
    waiting: tuple[str, ...] = ()
    #: files that cannot be read
    broken: tuple[BadFile, ...] = ()
    #: counts of the changes; ``None`` while files wait
    rebuilt: Rebuilt | None = None
    #: what the files hold
    survey: Survey
    #: records that the index lacks, by the file's place in the plan
    lacking: dict[int, Lack] = field(default_factory=dict)

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield new and changed records, in the order of the files.

        Raises:
            SyncRefused: a file changed meanwhile.
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
    """Determine what a rebuild will do; nothing is written to the index. Blocking.

    The survey of the folder is kept in the index's folder for the rebuild itself, which removes it at its end. For an
    index on object storage the folder is read again.

    Args:
        folder: the files.
        index: the index, whose lock the caller holds; ``None``: there is none yet.
        allow_gaps: whether files of PubMed's numbering may be missing.
        allow_removals: whether more than :data:`MOST_REMOVED` of the published passages may be removed.
        progress: called now and then while files are read.

    Raises:
        SyncRefused: the files are of several years, some are missing, or too much would be removed.
        BadFile: the folder cannot be read, or holds no file of a known format.
        IndexFault: the survey cannot be kept.
    """
    known = () if index is None else applied_files(index.connection, index.uri)
    todo = plan_rebuild(files_of(folder), known, allow_gaps=allow_gaps)
    tally = Tally()
    good, _ = whole(todo.files, {}, tally)
    with Survey.open(survey_path(index)) as survey:
        broken = list(tally.broken)
        if not broken:
            with readable(folder):
                wrong = survey.read(good, _read_progress(progress, len(good), tally))
            broken += [] if wrong is None else [wrong]
        found = Prospect(plan=todo, broken=tuple(broken), survey=survey)
        if broken:
            yield replace(found, waiting=tuple(file.name for file in todo.files))
            return
        rebuilt = _compare(survey, index, known, {file.name for file in todo.files})
        if not allow_removals:
            _check_removals(rebuilt)
        yield replace(found, rebuilt=rebuilt, lacking=survey.lacking())


def survey_path(index: Index | None) -> Path | None:
    """Return where the survey of an index's folder is kept; ``None``: nowhere."""
    folder = None if index is None else index.place.folder
    return None if folder is None else folder / SURVEY


def _check_removals(rebuilt: Rebuilt) -> None:
    if rebuilt.removed > MOST_REMOVED * rebuilt.published:
        raise SyncRefused(
            f"{rebuilt.removed:,} of the {rebuilt.published:,} passages of the index are in none of the files (limit: "
            f"{MOST_REMOVED:.0%}). Check that the folder is complete; pass --allow-removals to remove them",
            files=rebuilt.forgotten,
        )


def _compare(
    survey: Survey, index: Index | None, applied: Iterable[Applied], names: set[str]
) -> Rebuilt:
    passages = survey.passages
    if index is None:
        survey.compare((), note=True)
        return Rebuilt(
            passages=passages, new=passages, changed=0, unchanged=0, removed=0, published=0,
            forgotten=(), ingested=(),
        )  # fmt: skip
    newest, seen = index.newest(), index.view()
    now: Compared = survey.compare(_contents(newest), note=True)
    # rows that an interrupted run removed without publishing are lost to readers all the same
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


def _read_progress(
    progress: Callable[[SyncProgress], None] | None, files: int, tally: Tally
) -> Callable[[int, Path, int, int], None]:
    def report(read: int, path: Path, place: int, records: int) -> None:
        if progress is not None:
            now = replace(tally.progress(_mark(path, place)), unchanged=records)
            progress(SyncProgress(files=files, applied=read, ingest=now, reading=True))

    return report


def _mark(path: Path, line: int) -> Mark:
    """Return a place in a file, for progress only; it is not stored."""
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
