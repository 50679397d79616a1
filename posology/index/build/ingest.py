"""Ingest of corpus files into an index: in constant memory, resumable after a crash."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from posology.corpus.files import count_rows, is_table
from posology.corpus.folders import expand, skipped
from posology.corpus.references.columns import GUESSED, Columns
from posology.errors import BadFile, InputError
from posology.index.build.annotator import teach
from posology.index.build.batches import batches, read_ahead
from posology.index.build.pace import Pace
from posology.index.build.progress import Mark, Progress
from posology.index.build.report import IngestProgress, IngestReport, Tally
from posology.index.build.rows import QuickRowBuilder, RowBuilder, RowSource
from posology.index.build.vectors import GivenVectors
from posology.index.store import Index
from posology.index.sync.changes import apply
from posology.seams import Embedder, Unnormalised

#: records written between two compactions of the table: each commit leaves a small file, and the search for known ids
#: reads the files that no index covers yet
COMPACT_EVERY = 100_000


def ingest(
    paths: Sequence[Path],
    index: Index,
    source: RowSource,
    *,
    vectors: Path | None = None,
    columns: Columns = GUESSED,
    progress: Callable[[IngestProgress], None] | None = None,
    finish: bool = True,
    total: int | None = None,
    row: Callable[[], None] = lambda: None,
    phase: Callable[[str], None] = lambda _: None,
    quick: bool = False,
    once: bool = False,
) -> IngestReport:
    """Read corpus files into an index. Blocking.

    Readers see a first ingest grow, if its ``total`` is given; a later one at its end, together; after a crash, at the
    end of the next run. Earlier work is skipped: files, and beginnings of files, by path, size and modification time;
    single records by content. A killed run resumes at its last commit. Of two records with one id the later wins, in the order of ``paths``: all files after
    the first unfinished one are read again.

    Args:
        paths: files of any known format, and folders of them (docs/reference/corpora.md).
        index: the index to write; it is locked against other writers.
        source: the models that the index was made with. The annotator learns from the files before anything is
            written, see :func:`~posology.index.build.annotator.teach`.
        vectors: a ``.npy`` file with the passages' vectors, for a single corpus file: row i, from 0, is the vector of
            its i-th non-blank line. Sentences are embedded all the same.
        columns: names of columns of tables; where they change, a table is read again.
        progress: called after every commit.
        finish: whether to update the search indices at the end.
        total: records of all files; ``None``: readers see nothing before the end.
        row: called after each computed row.
        phase: called with what begins.
        quick: whether to write rows without vectors of sentences and token codes. Their passages can be found. The next
            ingest of the files completes the rows in place. No file counts as read then, so a killed run reads the
            files again, and encodes what the index lacks.
        once: whether the files are given this once, and removed: it is not kept that they were read.

    Returns:
        The counts, with the records and files that cannot be read.

    Raises:
        IndexMismatch: the index was made with another embedder, annotator or codec.
        IndexLocked: another process is writing the index.
        IndexUnfinished: a sync of the index was interrupted.
        InputError: ``vectors`` do not fit; nothing has been written then.
    """
    builder = source.builder_for(index)
    if quick:
        builder = QuickRowBuilder(embedder=source.embedder, annotator=source.annotator)
    tally = Tally(skipped=tuple(skipped(paths)))
    files = _files(paths, tally)
    given = None if vectors is None else _given(vectors, files, index, source.embedder)
    with index.staged():
        first = index.growth is not None
        marks = Progress(index.connection)
        _keep_order(files, marks, given, columns)
        if source.annotator is not None:
            phase("learning the words of the literature")
            new = _unfinished(files, marks, given, columns)
            teach(source.annotator, index, new, columns=columns)
        writer = BatchWriter(
            index=index,
            builder=builder,
            marks=marks,
            tally=tally,
            batch=source.batch,
            columns=columns,
            pace=Pace(index=index, tally=tally, total=total if first else None, row=row),
            quick=quick,
        )
        phase("encoding")
        writer.write(files, given=given, progress=progress)
        if once:
            marks.forget(files)
        if finish and not quick:
            phase("updating the search indices")
            index.finish()
            marks.tidy()
    return tally.report(files=len(files))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class BatchWriter:
    """Commits files to an index, batch by batch."""

    index: Index
    builder: RowBuilder
    #: how far each file is
    marks: Progress
    #: counts what is written
    tally: Tally
    #: records a batch
    batch: int
    #: names of columns of tables
    columns: Columns = GUESSED
    #: ``None``: each batch is one commit, and nothing is published
    pace: Pace | None = None
    #: whether rows without vectors of sentences will do; then no marks are written
    quick: bool = False

    def write(
        self,
        files: Iterable[Path],
        *,
        given: GivenVectors | None = None,
        progress: Callable[[IngestProgress], None] | None = None,
        retried: bool = True,
    ) -> None:
        """Commit files, each from its mark on.

        Args:
            files: in order.
            given: vectors that came with the file.
            progress: called after every commit.
            retried: whether the next run tries records without a row again: then the mark of their file stays before
                their batch.
        """
        compacted = self.tally.written
        #: paths of files whose marks stay where they are
        stopped: set[str] = set()
        parts = batches(
            files,
            lambda file: _resume(file, self.marks, given, self.columns),
            size=self.batch,
            columns=self.columns,
        )
        for part in read_ahead(parts, self.builder):
            if self.pace is None:
                refused = apply(part, self.index, self.builder, given, self.tally)
            else:
                take = self.pace.take
                refused = apply(
                    part, self.index, self.builder, given, self.tally, take=take, quick=self.quick
                )
                self.pace.end()
            if part.mark is not None:
                if refused and retried:
                    stopped.add(part.mark.path)
                if part.mark.path not in stopped and not self.quick:
                    self.marks.write(part.mark)
                if progress is not None:
                    progress(self.tally.progress(part.mark))
            if self.tally.written - compacted >= COMPACT_EVERY:
                self.index.compact()
                compacted = self.tally.written


def _files(paths: Sequence[Path], tally: Tally) -> list[Path]:
    files: list[Path] = []
    for found in expand(paths):
        if isinstance(found, BadFile):
            tally.broken.append(found)
        else:
            files.append(found)
    return files


def _given(vectors: Path, files: Sequence[Path], index: Index, embedder: Embedder) -> GivenVectors:
    if len(files) != 1:
        raise InputError(
            f"vectors need exactly 1 corpus file (got {len(files)}): ingest one file at a time",
            files=len(files),
        )
    unit = not isinstance(embedder, Unnormalised)
    given = GivenVectors(vectors, dim=index.meta.dim, unit=unit)
    given.expect(count_rows(files[0]), path=files[0])
    return given


def _keep_order(
    files: Sequence[Path], progress: Progress, given: GivenVectors | None, columns: Columns
) -> None:
    """Forget the files after the first unfinished one: they must replace what it writes.

    Before anything is written, so that it holds after a crash too.
    """
    for place, file in enumerate(files, start=1):
        try:
            mark = _resume(file, progress, given, columns)
        except OSError:
            continue  # reported when its turn comes
        if not mark.done:
            progress.forget(files[place:])
            return


def _unfinished(
    files: Sequence[Path], progress: Progress, given: GivenVectors | None, columns: Columns
) -> list[Path]:
    """Return the files that are not committed to their end."""
    found = []
    for file in files:
        try:
            if not _resume(file, progress, given, columns).done:
                found.append(file)
        except OSError:
            continue  # reported when its turn comes
    return found


def _resume(file: Path, progress: Progress, given: GivenVectors | None, columns: Columns) -> Mark:
    # few name columns, and a look into each file costs one
    named = columns.identity if columns.identity and is_table(file) else ""
    return progress.resume(Mark.start(file, given.identity if given else named))
