"""Batches: parts of corpus files that are read, encoded and committed together."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from posology.corpus.files import read
from posology.corpus.items import Deletion, Item, Notice, Parts, Record, Remark
from posology.corpus.references.columns import GUESSED, Columns
from posology.errors import BadFile, BadRecord
from posology.index.build.progress import Mark
from posology.index.build.rows import RowBuilder

#: characters of titles and texts at which a batch is closed before it is full: two batches are in memory at a time,
#: the one that is embedded and the one that is read
BATCH_CHARACTERS = 8_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """Part of one file, read."""

    #: items that may not be in the index yet, in the order of the file
    items: tuple[Record | Deletion | Notice | Parts, ...] = ()
    bad: tuple[BadRecord, ...] = ()
    remarks: tuple[Remark, ...] = ()
    #: good records that an earlier run committed
    passed: int = 0
    #: why the file cannot be read any further
    broken: BadFile | None = None
    #: the file's mark once this batch is committed; ``None``: unchanged
    mark: Mark | None = None

    @property
    def records(self) -> tuple[Record, ...]:
        """Return the records among the items."""
        return tuple(item for item in self.items if isinstance(item, Record))


def batches(
    files: Iterable[Path],
    resume: Callable[[Path], Mark],
    *,
    size: int,
    columns: Columns = GUESSED,
) -> Iterator[Batch]:
    """Yield what is still to be committed of files, in their order.

    Args:
        files: each is opened when its turn comes.
        resume: returns up to where a file was committed.
        size: items of a batch; more where several items share one place in a file.
        columns: names of columns of tables.
    """
    for file in files:
        try:
            mark = resume(file)
        except OSError as error:
            yield Batch(broken=BadFile(error.strerror or str(error), path=str(file)))
            continue
        yield Batch(passed=mark.good)
        if mark.done and not mark.bad:
            continue
        committed = mark.line
        # bad records are in no index: they can only be reported again by reading their lines again; remarks are not repeated
        items = read(file, after=0 if mark.bad else mark.line, columns=columns)
        for chunk in chunks(items, size):
            part = _batch(chunk, mark, committed)
            mark = part.mark or mark
            yield part
            if part.broken is not None:
                break
        else:
            if not mark.done:
                yield Batch(mark=replace(mark, done=True))


def read_ahead(parts: Iterator[Batch], builder: RowBuilder) -> Iterator[Batch]:
    """Yield the same batches; each is read, and begun, while earlier ones are being encoded."""
    begun: deque[Batch] = deque()
    with ThreadPoolExecutor(1, thread_name_prefix="ingest-reader") as reader:
        coming = reader.submit(next, parts, None)
        more = True
        while more or begun:
            while more and len(begun) < builder.window:
                batch = coming.result()
                if batch is None:
                    more = False
                    break
                coming = reader.submit(next, parts, None)
                builder.begin(batch.records)
                begun.append(batch)
            if begun:
                yield begun.popleft()


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield the items of one file in chunks of ``size``: smaller for long items, larger to keep one place together."""
    chunk: list[Item] = []
    characters, last = 0, 0
    for item in items:
        line = item.line or last
        # items at one place of a file are committed together: a mark cannot point between them
        if (len(chunk) >= size or characters >= BATCH_CHARACTERS) and line > last:
            yield chunk
            chunk, characters = [], 0
        chunk.append(item)
        last = max(last, line)
        if isinstance(item, Record):
            characters += len(item.passage.title) + len(item.passage.text)
    if chunk:
        yield chunk


def _batch(chunk: Sequence[Item], mark: Mark, committed: int) -> Batch:
    items = tuple(
        item
        for item in chunk
        if not isinstance(item, Remark | BadRecord | BadFile) and item.line > committed
    )
    bad = [b for b in chunk if isinstance(b, BadRecord)]
    fresh = [b for b in bad if b.line > committed]
    remarks = tuple(one for one in chunk if isinstance(one, Remark) and one.line > committed)
    lines = [
        *(item.line for item in items),
        *(b.line for b in fresh),
        *(one.line for one in remarks),
    ]
    after = replace(
        mark,
        line=max([mark.line, *lines]),
        good=mark.good + sum(isinstance(item, Record) for item in items),
        bad=mark.bad + len(fresh),
        deletions=mark.deletions + sum(isinstance(item, Deletion) for item in items),
        notices=mark.notices + sum(isinstance(item, Notice) for item in items),
    )
    return Batch(
        items=items,
        bad=tuple(bad),
        remarks=remarks,
        broken=next((b for b in chunk if isinstance(b, BadFile)), None),
        mark=after if after != mark else None,
    )
