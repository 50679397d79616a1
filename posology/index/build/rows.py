"""From records to index rows: what is computed once per passage, at ingest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from posology.corpus.items import Record
from posology.errors import BadRecord
from posology.index.build.vectors import GivenVectors
from posology.index.schema import Row, provisional, quantise
from posology.index.tokens import fitting
from posology.text.roles.column import roles_of
from posology.text.sentences import split
from posology.types import Encoded

if TYPE_CHECKING:
    from posology.index.store import Index
    from posology.seams import Annotator, Embedder, TokenCodec

#: records read and committed together
BATCH = 512
#: records encoded together, at the beginning and at most: the first are soon done, and more are not quicker
FIRST_ENCODED, MOST_ENCODED = 16, 128


class RowBuilder(Protocol):
    """Computes index rows, in this process or elsewhere. Blocking.

    The writer passes the records that it has read to :meth:`begin`, up to :attr:`window` batches ahead, and calls
    :meth:`rows` in the order of the files. So there is one writer, however many processes encode.
    """

    @property
    def window(self) -> int:
        """Maximum number of batches that are begun and not yet requested; at least 1."""
        ...

    def begin(self, records: Sequence[Record]) -> None:
        """Announce records whose rows will be requested, unless the index has them already; a hint."""
        ...

    def rows(
        self, records: Sequence[tuple[Record, str]], given: GivenVectors | None
    ) -> Iterator[Row]:
        """Return one row per record, in order; records that :meth:`refused` lists are left out.

        Args:
            records: with their digests.
            given: vectors that replace the encoder's own; ``None``: there are none.

        Raises:
            PosologyError: no row at all can be computed.
        """
        ...

    def refused(self) -> tuple[BadRecord, ...]:
        """Return the records without a row since the previous call."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class InProcess(ABC):
    """The part of a :class:`RowBuilder` that all builders of this process share."""

    embedder: Embedder
    annotator: Annotator | None

    @property
    def window(self) -> int:
        """Return 1: nothing is begun before its turn."""
        return 1

    def begin(self, records: Sequence[Record]) -> None:  # noqa: B027 - nothing is to be done
        """Do nothing: a processor that encodes one batch has no room for the next."""

    def refused(self) -> tuple[BadRecord, ...]:
        """Return no records: an encoding failure raises."""
        return ()

    def rows(
        self, records: Sequence[tuple[Record, str]], given: GivenVectors | None
    ) -> Iterator[Row]:
        """Return one row per record, in order, as soon as the records before are encoded."""
        for part in parts(records):
            yield from self._rows(part, given)

    @abstractmethod
    def _rows(
        self, records: Sequence[tuple[Record, str]], given: GivenVectors | None
    ) -> Iterator[Row]:
        """Return the rows of a part."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalRowBuilder(InProcess):
    """:class:`RowBuilder` that computes rows in this process."""

    #: the embedder's
    codec: TokenCodec | None

    def _rows(
        self, records: Sequence[tuple[Record, str]], given: GivenVectors | None
    ) -> Iterator[Row]:
        passages = [record.passage for record, _ in records]
        sentences = [split(passage.text) for passage in passages]
        encoded = self.embedder.embed_passages(passages, sentences, self.codec)
        annotate = self.annotator
        phrases = annotate(passages, sentences) if annotate else [None] * len(passages)
        for (record, digest), spans, vectors, annotated in zip(
            records, sentences, encoded, phrases, strict=True
        ):
            yield Row(
                passage=record.passage,
                sentences=spans,
                encoded=with_given(vectors, given, record),
                digest=digest,
                phrases=annotated,
                roles=roles_of(
                    self.embedder.name, record.passage, spans, quantise(vectors.sentence_vectors)
                ),
            )


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RowSource:
    """The models that an index was made with, and how its rows are computed."""

    embedder: Embedder
    #: ``None``: passages are not annotated
    annotator: Annotator | None = None
    #: for the token vectors; a codec of another embedder counts as none
    codec: TokenCodec | None = None
    #: computes the rows, with models of the same names; ``None``: this process does
    builder: RowBuilder | None = None
    #: records read, embedded and committed together; fewer when they are long, see
    #: :data:`~posology.index.build.batches.BATCH_CHARACTERS`
    batch: int = BATCH

    def builder_for(self, index: Index) -> RowBuilder:
        """Return what computes the rows of an index.

        Raises:
            IndexMismatch: the index was made with another embedder, annotator or codec.
        """
        index.require(self.embedder.name, self.embedder.dim)
        index.require_annotator(None if self.annotator is None else self.annotator.name)
        index.require_codec(self.codec)
        return self.builder or LocalRowBuilder(
            embedder=self.embedder,
            annotator=self.annotator,
            codec=fitting(self.codec, self.embedder.name),
        )


def parts(
    records: Sequence[tuple[Record, str]],
) -> Iterator[Sequence[tuple[Record, str]]]:
    """Yield the records in the lots that are encoded together, small ones first."""
    start, size = 0, FIRST_ENCODED
    while start < len(records):
        yield records[start : start + size]
        start, size = start + size, min(2 * size, MOST_ENCODED)


def with_given(encoded: Encoded, given: GivenVectors | None, record: Record) -> Encoded:
    """Return the encoding, with a record's given vector in place of the encoder's own."""
    return encoded if given is None else replace(encoded, vector=given.vector(record.row))


@dataclass(frozen=True, kw_only=True, slots=True)
class QuickRowBuilder(InProcess):
    """:class:`RowBuilder` that reads only the head of each passage.

    Its rows have no vectors of sentences and no token codes, and provisional digests: every later ingest of the records
    computes them anew.
    """

    def _rows(
        self, records: Sequence[tuple[Record, str]], given: GivenVectors | None
    ) -> Iterator[Row]:
        passages = [record.passage for record, _ in records]
        sentences = [split(passage.text) for passage in passages]
        if given is None:
            encoded = self.embedder.embed_passages(passages, [()] * len(passages))
            vectors = [one.vector for one in encoded]
        else:
            vectors = [given.vector(record.row) for record, _ in records]
        annotate = self.annotator
        phrases = annotate(passages, sentences) if annotate else [None] * len(passages)
        none = np.zeros((0, self.embedder.dim), np.float32)
        for (record, digest), spans, vector, annotated in zip(
            records, sentences, vectors, phrases, strict=True
        ):
            yield Row(
                passage=record.passage,
                sentences=spans,
                encoded=Encoded(vector=vector, sentence_vectors=none),
                digest=provisional(digest),
                phrases=annotated,
            )
