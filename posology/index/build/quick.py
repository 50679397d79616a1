"""Rows for a first look: passages can be found at once; sentences and token codes are encoded later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from posology.corpus.items import Record
from posology.index.build.rows import InProcess
from posology.index.build.vectors import GivenVectors
from posology.index.schema import Row, provisional
from posology.text.sentences import split
from posology.types import Encoded


@dataclass(frozen=True, kw_only=True, slots=True)
class QuickRowBuilder(InProcess):
    """:class:`~posology.index.build.rows.RowBuilder` that reads only the head of each passage.

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
