"""Corpus files into an index: in constant memory, and from where it stopped after a crash."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from posology.corpus.files import count_rows, expand
from posology.errors import BadFile, InputError
from posology.index.build.annotator import teach
from posology.index.build.batches import ahead, batches
from posology.index.build.progress import Mark, Progress
from posology.index.build.report import IngestProgress, IngestReport, Tally
from posology.index.build.rows import Making, maker_for
from posology.index.build.vectors import GivenVectors
from posology.index.store import Index
from posology.index.sync.changes import apply
from posology.seams import Unnormalised

if TYPE_CHECKING:
    from posology.seams import Annotator, Embedder, TokenCodec

#: records read, embedded and committed together
BATCH = 512
#: records written after which the table is compacted: every commit leaves a small file, and the
#: search for known ids reads those that no index holds yet
COMPACT_EVERY = 100_000


def ingest(
    paths: Sequence[Path],
    index: Index,
    embedder: Embedder,
    *,
    annotator: Annotator | None = None,
    codec: TokenCodec | None = None,
    batch: int = BATCH,
    vectors: Path | None = None,
    progress: Callable[[IngestProgress], None] | None = None,
    finish: bool = True,
    making: Making | None = None,
) -> IngestReport:
    """Read corpus files into an index. Blocking.

    Readers see all of it together at the end, or what there is of it after the next run.

    What was ingested before is passed over: whole files and the beginnings of files by their
    identity (path, size, time of change), single records by their content. A run that was
    killed goes on where its last commit was. Of two records with one id the later wins, in the
    order of ``paths``: from the first file that is not passed over, none is.

    Args:
        paths: files of any known format, and folders of them (docs/reference/corpora.md).
        index: where to; it is locked against other writers meanwhile.
        embedder: the one that the index was made with.
        annotator: the one that the index was made with. Before anything is written it learns from the
            files that are to be read, or is given what it learned from earlier ones: unless there
            are :data:`GROWTH` times as many records now. What it has learned is kept in the index.
        codec: the one that the index was made with, for the tokens' vectors; one for another embedder
            counts as none.
        batch: records that are read, embedded and committed together; fewer when they are long, see
            :mod:`posology.index.build.batches`.
        vectors: a ``.npy`` file with the passages' vectors, for a single corpus file: row i, from
            0, is the vector of its i-th line that is not blank. Sentences are embedded all the
            same.
        progress: called after every commit.
        finish: whether to bring the search indices up to date at the end.
        making: what computes the rows, with an embedder, an annotator and a codec of these names; ``None``:
            ``embedder``, ``annotator`` and ``codec`` do, in this process.

    Returns:
        What was read; records and files that cannot be read are in it, not raised.

    Raises:
        IndexMismatch: the embedder, the annotator or the codec is not the index's.
        IndexLocked: another process is writing the index.
        IndexUnfinished: a sync of it was broken off.
        InputError: ``vectors`` do not fit; nothing has been written then.
    """
    maker = maker_for(index, embedder, annotator, codec, making)
    tally = Tally()
    files: list[Path] = []
    for found in expand(paths):
        if isinstance(found, BadFile):
            tally.broken.append(found)
        else:
            files.append(found)
    given = None if vectors is None else _given(vectors, files, index, embedder)
    with index.staged():
        marks = Progress(index.connection)
        _keep_order(files, marks, given)
        if annotator is not None:
            teach(annotator, index, _unfinished(files, marks, given))
        commit(files, index, maker, marks, given=given, tally=tally, batch=batch, progress=progress)
        if finish:
            index.finish()
            marks.tidy()
    return tally.report(files=len(files))


def commit(
    files: Iterable[Path],
    index: Index,
    maker: Making,
    marks: Progress,
    *,
    given: GivenVectors | None = None,
    tally: Tally,
    batch: int = BATCH,
    progress: Callable[[IngestProgress], None] | None = None,
    retried: bool = True,
) -> None:
    """Commit files batch by batch, from where each of them was left; see :func:`ingest`.

    Of a file that holds a record of which no row can be made, the mark stays before that record's batch where it is to be
    ``retried``: the next run reads on from there, and tries it again.
    """
    compacted = tally.written
    #: paths of such files
    held: set[str] = set()
    for part in ahead(batches(files, lambda file: _resume(file, marks, given), size=batch), maker):
        refused = apply(part, index, maker, given, tally)
        if part.mark is not None:
            if refused and retried:
                held.add(part.mark.path)
            if part.mark.path not in held:
                marks.write(part.mark)
            if progress is not None:
                progress(tally.progress(part.mark))
        if tally.written - compacted >= COMPACT_EVERY:
            index.compact()
            compacted = tally.written


def _given(vectors: Path, files: Sequence[Path], index: Index, embedder: Embedder) -> GivenVectors:
    if len(files) != 1:
        raise InputError(
            f"vectors go with one corpus file, not with {len(files)}: ingest one file at a time",
            files=len(files),
        )
    unit = not isinstance(embedder, Unnormalised)
    given = GivenVectors(vectors, dim=index.meta.dim, unit=unit)
    given.expect(count_rows(files[0]), path=files[0])
    return given


def _keep_order(files: Sequence[Path], progress: Progress, given: GivenVectors | None) -> None:
    """Forget the files after the first that is to be read: what it writes, they must replace.

    Before anything is written, so that it holds after a crash too.
    """
    for place, file in enumerate(files, start=1):
        try:
            mark = _resume(file, progress, given)
        except OSError:
            continue  # reported when its turn comes
        if not mark.done:
            progress.forget(files[place:])
            return


def _unfinished(
    files: Sequence[Path], progress: Progress, given: GivenVectors | None
) -> list[Path]:
    """The files of which anything is still to be written."""
    found = []
    for file in files:
        try:
            if not _resume(file, progress, given).done:
                found.append(file)
        except OSError:
            continue  # reported when its turn comes
    return found


def _resume(file: Path, progress: Progress, given: GivenVectors | None) -> Mark:
    return progress.resume(Mark.start(file, given.identity if given else ""))
