"""Corpus files into an index: in constant memory, and from where it stopped after a crash."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from posology.corpus.jsonl import Record, count_rows, expand, read
from posology.errors import BadFile, BadRecord, InputError
from posology.index.progress import Mark, Progress
from posology.index.report import IngestProgress, IngestReport, Tally
from posology.index.schema import Row, digest
from posology.index.store import Index
from posology.index.vectors import GivenVectors
from posology.text.sentences import split
from posology.types import Encoded

if TYPE_CHECKING:
    from posology.seams import Embedder

#: records read, embedded and committed together
BATCH = 512
#: characters of titles and texts at which a batch is closed before it has that many records: two
#: batches are held at one time, the one that is embedded and the one that is read
BATCH_CHARACTERS = 8_000_000
#: records written after which the table is compacted: every commit leaves a small file, and the
#: search for known ids reads those that no index holds yet
COMPACT_EVERY = 100_000


@dataclass(frozen=True, kw_only=True, slots=True)
class _Batch:
    """Part of one file, read."""

    #: those that are not known to be in the index
    records: tuple[Record, ...] = ()
    bad: tuple[BadRecord, ...] = ()
    #: good records that an earlier run committed
    passed: int = 0
    #: why the file ends here although it does not
    broken: BadFile | None = None
    #: what holds once this batch is committed; ``None``: what held before
    mark: Mark | None = None


def ingest(
    paths: Sequence[Path],
    index: Index,
    embedder: Embedder,
    *,
    batch: int = BATCH,
    vectors: Path | None = None,
    progress: Callable[[IngestProgress], None] | None = None,
    finish: bool = True,
) -> IngestReport:
    """Read corpus files into an index. Blocking.

    What was ingested before is passed over: whole files and the beginnings of files by their
    identity (path, size, time of change), single records by their content. A run that was
    killed goes on where its last commit was. Of two records with one id the later wins, in the
    order of ``paths``: from the first file that is not passed over, none is.

    Args:
        paths: files, and folders of ``*.jsonl`` and ``*.jsonl.gz``.
        index: where to; it is locked against other writers meanwhile.
        embedder: the one that the index was made with.
        batch: records that are read, embedded and committed together; fewer when they are long, see
            :data:`BATCH_CHARACTERS`.
        vectors: a ``.npy`` file with the passages' vectors, for a single corpus file: row i, from
            0, is the vector of its i-th line that is not blank. Sentences are embedded all the
            same.
        progress: called after every commit.
        finish: whether to bring the search indices up to date at the end.

    Returns:
        What was read; records and files that cannot be read are in it, not raised.

    Raises:
        IndexMismatch: the embedder is not the index's.
        IndexLocked: another process is writing the index.
        InputError: ``vectors`` do not fit; nothing has been written then.
    """
    index.require(embedder.name, embedder.dim)
    tally = Tally()
    files: list[Path] = []
    for found in expand(paths):
        if isinstance(found, BadFile):
            tally.broken.append(found)
        else:
            files.append(found)
    given = None if vectors is None else _given(vectors, files, dim=index.meta.dim)
    with index.lock:
        marks = Progress(index.connection)
        _keep_order(files, marks, given)
        compacted = 0
        for part in _ahead(_batches(files, marks, given, size=batch)):
            _commit(part, index, embedder, given, tally)
            if part.mark is not None:
                marks.write(part.mark)
                if progress is not None:
                    progress(tally.progress(part.mark))
            if tally.written - compacted >= COMPACT_EVERY:
                index.compact()
                compacted = tally.written
        if finish:
            index.finish()
            marks.tidy()
    return tally.report(files=len(files))


def _given(vectors: Path, files: Sequence[Path], *, dim: int) -> GivenVectors:
    if len(files) != 1:
        raise InputError(
            f"vectors go with one corpus file, not with {len(files)}: ingest one file at a time",
            files=len(files),
        )
    given = GivenVectors(vectors, dim=dim)
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


def _resume(file: Path, progress: Progress, given: GivenVectors | None) -> Mark:
    return progress.resume(Mark.start(file, given.identity if given else ""))


def _batches(
    files: Iterable[Path], progress: Progress, given: GivenVectors | None, *, size: int
) -> Iterator[_Batch]:
    for file in files:
        try:
            mark = _resume(file, progress, given)
        except OSError as error:
            yield _Batch(broken=BadFile(error.strerror or str(error), path=str(file)))
            continue
        yield _Batch(passed=mark.good)
        if mark.done and not mark.bad:
            continue
        # bad records are in no index: only reading the lines again can report them again
        items = read(file, after=0 if mark.bad else mark.line)
        for chunk in _chunks(items, size):
            part = _batch(chunk, mark)
            mark = part.mark or mark
            yield part
            if part.broken is not None:
                break
        else:
            if not mark.done:
                yield _Batch(mark=replace(mark, done=True))


def _chunks(
    items: Iterable[Record | BadRecord | BadFile], size: int
) -> Iterator[list[Record | BadRecord | BadFile]]:
    chunk: list[Record | BadRecord | BadFile] = []
    characters = 0
    for item in items:
        chunk.append(item)
        if isinstance(item, Record):
            characters += len(item.passage.title) + len(item.passage.text)
        if len(chunk) >= size or characters >= BATCH_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def _batch(chunk: Sequence[Record | BadRecord | BadFile], mark: Mark) -> _Batch:
    records = [r for r in chunk if isinstance(r, Record) and r.line > mark.line]
    bad = [b for b in chunk if isinstance(b, BadRecord)]
    lines = [r.line for r in records] + [b.line for b in bad if b.line > mark.line]
    after = replace(
        mark,
        line=max(lines, default=mark.line),
        good=mark.good + len(records),
        bad=mark.bad + sum(b.line > mark.line for b in bad),
    )
    return _Batch(
        records=tuple(records),
        bad=tuple(bad),
        broken=next((b for b in chunk if isinstance(b, BadFile)), None),
        mark=after if after != mark else None,
    )


def _ahead(batches: Iterator[_Batch]) -> Iterator[_Batch]:
    """The same batches, each read while the one before is being embedded."""
    with ThreadPoolExecutor(1, thread_name_prefix="ingest-reader") as reader:
        coming = reader.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, batches, None)
            yield batch


def _commit(
    part: _Batch, index: Index, embedder: Embedder, given: GivenVectors | None, tally: Tally
) -> None:
    # of two records with one id the later is kept, in one batch as across batches
    latest = {record.passage.id: record for record in part.records}
    known = index.digests(list(latest)) if latest else {}
    changed: list[tuple[Record, str]] = []
    for record in latest.values():
        found = digest(record.passage, given.raw(record.row) if given else b"")
        if known.get(record.passage.id) != found:
            changed.append((record, found))
    if changed:
        passages = [record.passage for record, _ in changed]
        sentences = [split(passage.text) for passage in passages]
        rows = [
            Row(
                passage=record.passage,
                sentences=spans,
                encoded=_with_given(encoded, given, record),
                digest=found,
            )
            for (record, found), spans, encoded in zip(
                changed, sentences, embedder.embed_passages(passages, sentences), strict=True
            )
        ]
        index.upsert(rows)
    tally.add(
        written=len(changed),
        unchanged=part.passed + len(latest) - len(changed),
        replaced=len(part.records) - len(latest),
        bad=part.bad,
        broken=part.broken,
    )


def _with_given(encoded: Encoded, given: GivenVectors | None, record: Record) -> Encoded:
    return encoded if given is None else replace(encoded, vector=given.vector(record.row))
