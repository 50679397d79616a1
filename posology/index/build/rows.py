"""From records to rows: what is computed of a passage once, at ingest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from posology.corpus.items import Record
from posology.errors import BadRecord
from posology.index.build.vectors import GivenVectors
from posology.index.schema import Row
from posology.index.tokens import fitting
from posology.text.sentences import split
from posology.types import Encoded

if TYPE_CHECKING:
    from posology.index.store import Index
    from posology.seams import Annotator, Embedder, TokenCodec


class Making(Protocol):
    """Computes what is kept of passages, here or elsewhere. Blocking.

    Whoever writes an index tells :meth:`begin` of the records that it has read, up to :attr:`window` batches
    ahead, and asks for the rows of a batch when it is that batch's turn: so there is one writer, which writes in the
    order of the files, however many encode.
    """

    @property
    def window(self) -> int:
        """Batches that are begun, and not asked for yet, at most; at least 1."""
        ...

    def begin(self, records: Sequence[Record]) -> None:
        """Rows of these records will be wanted, unless the index has them already; a hint."""
        ...

    def rows(
        self, records: Sequence[tuple[Record, str]], given: GivenVectors | None
    ) -> Iterator[Row]:
        """One row a record, which comes with its digest, in order; those that :meth:`refused` names are left out.

        Raises:
            PosologyError: nothing can be computed at all.
        """
        ...

    def refused(self) -> tuple[BadRecord, ...]:
        """The records of which no row can be computed, since this was last asked."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class RowMaker:
    """Computes what is kept of a passage, here and now, as a :class:`Making`."""

    embedder: Embedder
    annotator: Annotator | None
    #: the embedder's
    codec: TokenCodec | None

    @property
    def window(self) -> int:
        """One batch: nothing is begun before its turn."""
        return 1

    def begin(self, records: Sequence[Record]) -> None:
        """Nothing: a processor that encodes one batch has no room for the next."""

    def refused(self) -> tuple[BadRecord, ...]:
        """None: what cannot be encoded raises."""
        return ()

    def rows(
        self, records: Sequence[tuple[Record, str]], given: GivenVectors | None
    ) -> Iterator[Row]:
        """One row a record, which comes with its digest."""
        passages = [record.passage for record, _ in records]
        sentences = [split(passage.text) for passage in passages]
        encoded = self.embedder.embed_passages(passages, sentences, self.codec)
        phrases = self.annotator(passages, sentences) if self.annotator else [None] * len(passages)
        for (record, found), spans, vectors, told in zip(
            records, sentences, encoded, phrases, strict=True
        ):
            yield Row(
                passage=record.passage,
                sentences=spans,
                encoded=with_given(vectors, given, record),
                digest=found,
                phrases=told,
            )


def with_given(encoded: Encoded, given: GivenVectors | None, record: Record) -> Encoded:
    """What was encoded, with the vector that was handed in in place of the encoder's own."""
    return encoded if given is None else replace(encoded, vector=given.vector(record.row))


def maker_for(
    index: Index,
    embedder: Embedder,
    annotator: Annotator | None,
    codec: TokenCodec | None,
    making: Making | None,
) -> Making:
    """What makes an index's rows: what is given for it, else this process.

    Raises:
        IndexMismatch: the embedder, the annotator or the codec is not the index's.
    """
    index.require(embedder.name, embedder.dim)
    index.require_annotator(None if annotator is None else annotator.name)
    index.require_codec(codec)
    return making or RowMaker(
        embedder=embedder, annotator=annotator, codec=fitting(codec, embedder.name)
    )
