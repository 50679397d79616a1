"""A run of a screening: sheets in, sheets in a new order and a flow diagram out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.screening.diagram import diagram
from orchestrator.screening.forms import ScreeningOutput, ScreeningSource
from orchestrator.screening.review import DIAGRAM, Review
from orchestrator.screening.sheets import DECISION, ID, write_file
from posology.errors import BadFile
from posology.types.tables import Document

if TYPE_CHECKING:
    from orchestrator.screening.candidates import Candidates
    from orchestrator.screening.ranking import Order
    from posology.index.store import Index
    from posology.seams import Embedder

#: columns of a reader's sheet, of that of disagreements and of that of full texts
READER = ("place", ID, DECISION, "title", "year", "remarks", "abstract", "added")
DISPUTED = (ID, DECISION, "title")
REPORT = (ID, DECISION, "reason", "title", "year", "doi")


@dataclass(frozen=True, kw_only=True, slots=True)
class Screen:
    """A screening of records in a folder.

    Args:
        question: question by which the records are ordered.
        candidates: the records.
        folder: of the sheets; it is made if it is missing.
        readers: names of one or two readers, which are those of their sheets.
        target: recall at which reading may stop, 0 to 1.
    """

    question: str
    candidates: Candidates
    folder: Path
    readers: tuple[str, ...]
    target: float

    def run(self, order: Order) -> ScreeningOutput:
        """Read the sheets, write them anew, and return where the screening stands. Blocking.

        Raises:
            BadFile: a sheet cannot be read, has another form, or cannot be written. No sheet was changed, except where writing
                failed.
        """
        review = Review.read(self.folder, self.readers, self.candidates)
        read = review.read_order
        sought = tuple(name for name, relevant in read.items() if relevant)
        out = self._output(review, read, sought)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadFile(error.strerror or str(error), path=str(self.folder)) from None
        documents = {one.id: one for one in self.candidates.documents}
        # what was passed over keeps its place, so that it is seen again
        places = review.places
        above = sorted((*read, *review.passed_over), key=lambda name: places.get(name, 0))
        ordered = [documents[i] for i in dict.fromkeys((*above, *order.unread(read)))]
        for sheet in review.sheets.values():
            sheet.write(READER, self._rows(ordered, review.added, len(read)))
        if len(self.readers) > 1:
            rows = (
                {ID: i, "title": documents[i].title}
                | {name: some[i].value for name, some in review.readers.items()}
                for i in review.disputed
            )
            review.disagreements.write((*DISPUTED, *self.readers), rows)
        # a report that a reader no longer seeks keeps its decision
        kept = (name for name, row in review.full_text.rows.items() if row[DECISION].strip())
        reports = dict.fromkeys((*sought, *kept))
        review.full_text.write(REPORT, (_report(documents[name]) for name in reports))
        write_file(self.folder / DIAGRAM, diagram(out))
        return out

    def _rows(
        self, ordered: list[Document], added: Mapping[str, int], read: int
    ) -> Iterator[dict[str, str]]:
        for place, one in enumerate(ordered, 1):
            first = one.passages[0]
            yield {
                "place": str(place),
                ID: one.id,
                "title": one.title,
                "year": str(first.year or ""),
                "remarks": "RETRACTED" if one.id in self.candidates.retracted else "",
                "abstract": first.text,
                "added": str(added.get(one.id, read)),
            }

    def _output(
        self, review: Review, read: Mapping[str, bool], sought: tuple[str, ...]
    ) -> ScreeningOutput:
        records = len(self.candidates.documents)
        return ScreeningOutput(
            question=self.question,
            folder=str(self.folder),
            sources=tuple(
                ScreeningSource(file=name, records=n) for name, n in self.candidates.sources
            ),
            duplicates=self.candidates.duplicates,
            unreadable=self.candidates.unreadable,
            records=records,
            screened=len(read),
            excluded=len(read) - len(sought),
            unscreened=records - len(read),
            recall=review.statement(records, self.target),
            readers=review.agreement(),
            reports=review.reports(sought),
        )


def make_order(question: str, candidates: Candidates, index: Index, embedder: Embedder) -> Order:
    """Return the order of records by the vectors of their index. Blocking.

    The vector of a record in several passages is their mean; its words are those of all.
    """
    import numpy as np

    from orchestrator.screening.ranking import Order, by_words
    from posology.types import Passage

    documents = candidates.documents
    fetched = index.fetch([part.id for one in documents for part in one.passages])
    vectors = {row.passage.id: row.vector for row in fetched}
    whole = [
        Passage(id=one.id, title=one.title, text="\n".join(part.text for part in one.passages))
        for one in documents
    ]
    return Order(
        [one.id for one in documents],
        np.stack([np.mean([vectors[p.id] for p in one.passages], axis=0) for one in documents]),
        embedder.embed_queries([question])[0],
        by_words(question, whole),
    )


def _report(document: Document) -> dict[str, str]:
    first = document.passages[0]
    return {
        ID: document.id,
        "title": document.title,
        "year": str(first.year or ""),
        "doi": first.doi or "",
    }
