"""What the contract suite of compressors reads off a result and off the text alone: ``CHECKS``, and their parts."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from posology.text.quotes import MIN_TOKENS, DropReason, Span, locate
from posology.types import Compressed, Excerpt, Retrieval, Sentence
from prompts.answer import Quote, render_answer
from strategies.evidence import check
from tests.support.compression_harnesses import MADE_UP, Made, Unit

#: of a compressor, what it was given, the share, and what it left of it
Check = Callable[[Made, Retrieval, float | None, Compressed], None]

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


def _spans_in_order(_: Made, retrieval: Retrieval, __: float | None, left: Compressed) -> None:
    well_formed(left, retrieval)


def _only_what_may_write_summaries_does(
    made: Made, _: Retrieval, __: float | None, left: Compressed
) -> None:
    assert left.extractive or not made.extractive


def _what_is_shown_can_be_quoted(
    made: Made, retrieval: Retrieval, _: float | None, left: Compressed
) -> None:
    """But for what a denial before it governs: that is shown, too, and a quote from there on stands."""
    if not made.harness.guarded:
        return
    for excerpt in left.excerpts:
        text = excerpt.passage.text
        for sentence in sentences_of(retrieval, excerpt):
            shown = [s for s in excerpt.sentences if sentence.start <= s.start < sentence.end]
            for span in shown:
                # what is shorter is refused as a quote wherever it stands
                if len(re.findall(r"[^\W_]+", span.of(text))) < MIN_TOKENS:
                    continue
                found = locate(span.of(text), text)
                if found in (DropReason.DROPS_NEGATION, DropReason.DROPS_COMPARISON):
                    found = locate(text[shown[0].start : span.end], text)
                assert isinstance(found, Span), (span.of(text), found)


def _the_share_is_honoured_in_its_unit(
    made: Made, retrieval: Retrieval, keep: float | None, left: Compressed
) -> None:
    there = {(r.passage.id, s) for r in retrieval.passages for s in r.sentences}
    whole = {(e.passage.id, s) for e in left.excerpts for s in e.sentences} & there
    assert left.sentences == len(there)
    assert 0 <= left.kept <= len(whole)
    if keep is None:
        return
    if made.harness.unit is Unit.SENTENCES:
        assert keep * len(there) - 1e-9 <= left.kept < keep * len(there) + 1
    if made.harness.unit is Unit.TOP:
        assert left.kept >= keep * len(there) - 1e-9
    if made.harness.unit is Unit.WORDS:
        # what a word is, is not counted alike by all: "p < 0.001" is one word or three
        assert shown_words(left) <= (keep + 0.05) * words(retrieval) + 1


def _a_fragment_keeps_its_negations_numbers_and_doses(
    made: Made, retrieval: Retrieval, _: float | None, left: Compressed
) -> None:
    """Read off the text alone: nothing that annotates it is trusted."""
    if not made.harness.guarded:
        return
    for excerpt in left.excerpts:
        text = excerpt.passage.text
        for at in protected_beside(text, excerpt.sentences, sentences_of(retrieval, excerpt)):
            assert any(s.start <= at.start and at.end <= s.end for s in excerpt.sentences), (
                f"{at.of(text)!r} is missing beside {[s.of(text) for s in excerpt.sentences]}"
            )


def _a_summary_is_shown_as_one_and_never_quoted(
    _: Made, retrieval: Retrieval, __: float | None, left: Compressed
) -> None:
    for i, excerpt in enumerate(left.excerpts):
        if excerpt.summary is None:
            continue
        assert MADE_UP not in excerpt.summary
        (line,) = [
            line
            for line in render_answer(retrieval.query, (excerpt,)).messages[-1].content.split("\n")
            if " ".join(excerpt.summary.split()) in line
        ]
        assert line.startswith("summary (")
        verified = check([Quote(passage=f"P{i + 1}", quote=excerpt.summary)], left.excerpts)
        for citation in verified.citations:
            assert citation.quote in excerpt.passage.text


CHECKS: tuple[Check, ...] = (
    _spans_in_order,
    _only_what_may_write_summaries_does,
    _what_is_shown_can_be_quoted,
    _the_share_is_honoured_in_its_unit,
    _a_fragment_keeps_its_negations_numbers_and_doses,
    _a_summary_is_shown_as_one_and_never_quoted,
)
