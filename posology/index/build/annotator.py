"""Training of an index's annotator on the files of an ingest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from posology.corpus.files import count_rows, read
from posology.corpus.items import Record
from posology.corpus.references.columns import GUESSED, Columns
from posology.errors import IndexFault
from posology.index.learned import Learned, keep_learned, read_learned
from posology.index.store import Index
from posology.types import Passage

if TYPE_CHECKING:
    from posology.seams import Annotator

#: an annotator is trained again on files with more than this many times the records that it was trained on: an update
#: of the literature must not retrain it, and a first small ingest must not fix it for good
GROWTH = 2


def teach(
    annotator: Annotator, index: Index, files: Sequence[Path], *, columns: Columns = GUESSED
) -> None:
    """Train an annotator on files, or restore what it learned before; before anything is written.

    It is trained where the index holds no learned state, or where the files have more than :data:`GROWTH` times the
    records that the state was made from. What it learned is kept in the index.

    Args:
        annotator: the annotator to train.
        index: the index that is about to be written.
        files: files with new records.
        columns: names of columns of tables among them.

    Raises:
        IndexFault: the learned state in the index is damaged.
    """
    if not files:
        return
    kept = read_learned(index.connection)
    if kept is not None and _count(files, columns) <= GROWTH * kept.passages:
        try:
            annotator.restore(kept.data)
        except ValueError as error:
            raise IndexFault(
                f"the learned state of {kept.annotator} in the index at {index.uri} is damaged: build a new index",
                index=index.uri,
            ) from error
        return
    annotator.learn(_passages(files, columns))
    data = annotator.dump()
    if data is not None:
        # counted from the beginning of each file, so that resuming an interrupted ingest does not retrain
        passages = _count(files, columns)
        learned = Learned(annotator=annotator.name, passages=passages, data=data)
        keep_learned(index.connection, learned)


def _count(files: Sequence[Path], columns: Columns) -> int:
    return sum(count_rows(file, columns=columns) for file in files)


def _passages(files: Sequence[Path], columns: Columns) -> Iterator[Passage]:
    for file in files:
        for item in read(file, columns=columns):
            if isinstance(item, Record):
                yield item.passage
