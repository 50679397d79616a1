"""Before files are read into an index, its annotator learns from them, or remembers what it learned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from posology.corpus.files import count_rows, read
from posology.corpus.items import Record
from posology.errors import IndexFault
from posology.index.learned import Learned, keep_learned, read_learned
from posology.index.store import Index
from posology.types import Passage

if TYPE_CHECKING:
    from posology.seams import Annotator

#: an annotator learns anew from files that hold this many times the records that it has learned from:
#: an update of the literature must not teach it all again, and a first trial not for good
GROWTH = 2


def teach(annotator: Annotator, index: Index, files: Sequence[Path]) -> None:
    """Let an annotator learn from files, or remember what it learned; before anything is written."""
    if not files:
        return
    kept = read_learned(index.connection)
    if kept is not None and sum(map(count_rows, files)) <= GROWTH * kept.passages:
        try:
            annotator.restore(kept.data)
        except ValueError as error:
            raise IndexFault(
                f"what the index at {index.uri} keeps of {kept.annotator} is damaged: build it anew",
                index=index.uri,
            ) from error
        return
    annotator.learn(_passages(files))
    data = annotator.dump()
    if data is not None:
        # from the beginning of each file, so that an ingest that was broken off finds them fewer
        passages = sum(map(count_rows, files))
        learned = Learned(annotator=annotator.name, passages=passages, data=data)
        keep_learned(index.connection, learned)


def _passages(files: Sequence[Path]) -> Iterator[Passage]:
    for file in files:
        for item in read(file):
            if isinstance(item, Record):
                yield item.passage
