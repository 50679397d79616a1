"""Published forms of passages that were found."""

from __future__ import annotations

from textwrap import shorten
from typing import TYPE_CHECKING, Any

from posology.published.answers import Also, PassageOutput, Ranked, SentenceOutput, Source
from posology.published.literature import Found, SearchOutput
from posology.types import Retrieval, Retrieved

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


#: characters of a passage that a search shows
SNIPPET = 300


def search_output(retrieval: Retrieval, *, mode: str, k: int, seconds: float) -> SearchOutput:
    """Return the published form of a search."""
    return SearchOutput(
        query=retrieval.query.text,
        mode=mode,
        k=k,
        hits=tuple(
            Found(
                **dict(one),
                snippet=snippet(passage, retrieval.query_vector),
                role=passage.roles[nearest(passage, retrieval.query_vector)]
                if passage.roles
                else None,
            )
            for one, passage in zip(ranked(retrieval), retrieval.passages, strict=True)
        ),
        dense=retrieval.dense.ids,
        bm25_rerank=retrieval.bm25_rerank.ids,
        bm25=retrieval.bm25.ids,
        fused=retrieval.fused.ids,
        index=retrieval.index_version,
        filters=retrieval.filters or None,
        seconds=seconds,
        growth=None if retrieval.growth is None else str(retrieval.growth),
        added=retrieval.added,
    )


def snippet(found: Retrieved, query: NDArray[np.float32]) -> str:
    """Return the sentence of a passage that is nearest to a query, or as much of it as fits.

    Args:
        found: the passage; without vectors of its sentences the first one is returned.
        query: shape ``(dim,)``.
    """
    sentences = found.sentences
    text = found.passage.text
    if sentences:
        text = sentences[nearest(found, query)].of(text)
    return shorten(text, SNIPPET, placeholder=" …")


def nearest(found: Retrieved, query: NDArray[np.float32]) -> int:
    """Return the place of the sentence that is nearest to a query; 0: there are no vectors of sentences."""
    vectors = found.sentence_vectors
    return int((vectors @ query).argmax()) if 0 < len(vectors) == len(found.sentences) else 0


def passage_output(retrieved: Retrieved, *, index: str) -> PassageOutput:
    """Return the published form of a passage, with its text and sentences.

    Args:
        retrieved: the passage, with its sentences.
        index: name and version of its index.
    """
    passage = retrieved.passage
    roles = retrieved.roles or [None] * len(retrieved.sentences)
    return PassageOutput(
        passage=Source.of(passage),
        text=passage.text,
        mesh=passage.mesh,
        languages=passage.languages,
        same_work=passage.same_work,
        index=index,
        sentences=tuple(
            SentenceOutput(start=sentence.start, end=sentence.end, role=role)
            for sentence, role in zip(retrieved.sentences, roles, strict=True)
        ),
    )


def ranked(retrieval: Retrieval) -> tuple[Ranked, ...]:
    """The retrieved passages with their places in the three rankings."""
    places = {
        ranking.method: {hit.passage_id: (i, hit.score) for i, hit in enumerate(ranking.hits, 1)}
        for ranking in (retrieval.dense, retrieval.bm25, retrieval.fused)
    }
    also: dict[str, list[Also]] = {}
    for one in retrieval.folded:
        also.setdefault(one.into, []).append(Also(id=one.id, why=one.why))
    rows = []
    for retrieved in retrieval.passages:
        fields: dict[str, Any] = {
            "passage": Source.of(retrieved.passage),
            "also": also.get(retrieved.passage.id, ()),
        }
        for method, by_id in places.items():
            place, score = by_id.get(retrieved.passage.id, (None, None))
            fields |= {method: place, f"{method}_score": score}
        rows.append(Ranked.model_validate(fields))
    return tuple(rows)
