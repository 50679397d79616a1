"""What the contract suite of compressors reads off a result and off the text alone."""

from __future__ import annotations

import re

import numpy as np

from posology.types import Compressed, Excerpt, Retrieval, Sentence

#: what a fragment may not be shown without: a number with what is glued to it and its unit, a denial
_PROTECTED = re.compile(
    r"(?:[<>=≤≥±−+]\s?)?\d(?:[\d.,–]*\d)?(?:\s?(?:%|mg/kg|mg|g/dL|IU/day|kg|years|days|hours))?"
    r"|\b(?:not|no|never|without|neither)\b|n't\b"
    r"|\b(?:aspirin|heparin|insulin|warfarin|apixaban|atorvastatin|dexamethasone|paracetamol)\b",
    re.IGNORECASE,
)
#: between these, what is protected belongs together whatever an annotator makes of it
_PARTS = re.compile(r"[,;:()]\s|\s[(]|\s(?:and|or|to|but|whereas)\s")


def well_formed(compressed: Compressed, retrieval: Retrieval) -> None:
    """Excerpts in the passages' order, each with spans of its sentences in their order, or a summary."""
    known = {one.passage.id: one for one in retrieval.passages}
    order = [excerpt.passage.id for excerpt in compressed.excerpts]
    assert order == [i for i in known if i in order]
    assert len(order) == len(set(order))
    for excerpt in compressed.excerpts:
        assert excerpt.passage is known[excerpt.passage.id].passage
        assert excerpt.sentences or excerpt.summary, "what nothing is left of is left out"
        if excerpt.summary is not None:
            assert excerpt.summary.strip()
        end = 0
        for span in excerpt.sentences:
            assert end <= span.start < span.end
            assert span.of(excerpt.passage.text).strip() == span.of(excerpt.passage.text)
            assert _around(span, known[excerpt.passage.id].sentences)
            end = span.end


def arrays(retrieval: Retrieval) -> list[np.ndarray]:
    """Copies of what was computed at ingest."""
    found: list[np.ndarray] = [retrieval.query_vector.copy()]
    for one in retrieval.passages:
        found += [one.vector.copy(), one.sentence_vectors.copy()]
        if one.phrases is not None:
            found += [one.phrases.protected.copy(), one.phrases.clauses.copy()]
            found += [one.phrases.words.copy(), one.phrases.information.copy()]
    return found


def _around(span: Sentence, sentences: tuple[Sentence, ...]) -> bool:
    return any(s.start <= span.start and span.end <= s.end for s in sentences)


def sentences_of(retrieval: Retrieval, excerpt: Excerpt) -> tuple[Sentence, ...]:
    """The sentences of an excerpt's passage."""
    return next(r.sentences for r in retrieval.passages if r.passage is excerpt.passage)


def shown_words(compressed: Compressed) -> int:
    """How many words of the passages are shown."""
    return sum(
        len(span.of(excerpt.passage.text).split())
        for excerpt in compressed.excerpts
        for span in excerpt.sentences
    )


def words(retrieval: Retrieval) -> int:
    """How many words the sentences of its passages have."""
    return sum(
        len(s.of(one.passage.text).split()) for one in retrieval.passages for s in one.sentences
    )


def protected_beside(
    text: str, spans: tuple[Sentence, ...], sentences: tuple[Sentence, ...]
) -> list[Sentence]:
    """What is protected in every part of a sentence of which a span shows some word."""
    found = []
    for sentence in sentences:
        edges = [sentence.start, *(m.end() - 1 for m in _PARTS.finditer(text, *_range(sentence)))]
        for start, end in zip(edges, [*edges[1:], sentence.end], strict=True):
            if any(re.search(r"\w", text[max(s.start, start) : min(s.end, end)]) for s in spans):
                found += [
                    Sentence(start=m.start(), end=m.end())
                    for m in _PROTECTED.finditer(text, start, end)
                ]
    return found


def _range(sentence: Sentence) -> tuple[int, int]:
    return sentence.start, sentence.end
