from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.llm.structured import Structured
from posology.seams import Compressor, Rewriter
from posology.testing import ScriptedModel
from posology.types import Compressed, Excerpt, Retrieval, Task, TokenCodes, Usage
from prompts.rewrite import Summary, SummaryReply
from strategies.compression import COMPRESSORS, MOST_CASCADES, known, make
from strategies.compression.cascade import (
    DEFAULT_KEEP,
    Cascade,
    CascadeName,
    RewritingCascade,
    cascade,
    parse,
)
from strategies.compression.leancontext import LeanContext
from strategies.compression.rewriters.query_summary import QuerySummary
from strategies.compression.selective_context import SelectiveContext
from tests.support.compression import WRITTEN, compressible, contexts

TOP = LeanContext.top()
#: compress without a model
NAMES = ("selective_context", "selective_context_sentence", "leancontext", "extractive_summary")


class Seen:
    """A compressor that leaves all of what it sees, and keeps it; of each passage it says something, if it is to."""

    name = "seen"

    def __init__(self, summary: str | None = None, share: float = 0.3) -> None:
        self.summary = summary
        self.share = share
        self.retrievals: list[Retrieval] = []

    @property
    def extractive(self) -> bool:
        return self.summary is None

    def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:
        assert keep is None, "how much is left of the rest is its own choice"
        self.retrievals.append(retrieval)
        return Compressed(
            excerpts=tuple(
                Excerpt(
                    passage=one.passage,
                    sentences=() if self.summary else one.sentences,
                    summary=self.summary,
                )
                for one in retrieval.passages
            ),
            kept=0,
            sentences=0,
            compressor=self.name,
            usage=Usage(input=3),
            remarks=("Seen.",),
        )

    def expected_ratio(self, keep: float | None) -> float:
        return self.share if keep is None else keep

    def seconds(self, retrieval: Retrieval, keep: float | None) -> float:
        return 2.0


def of(rest: Compressor, keep: float | None = None) -> Cascade:
    made = cascade(name="top+it", top=TOP, rest=rest, keep=keep)
    assert isinstance(made, Cascade)
    return made


def spans(compressed: Compressed) -> dict[str, list[str]]:
    return {e.passage.id: [s.of(e.passage.text) for s in e.sentences] for e in compressed.excerpts}


def with_codes(retrieval: Retrieval) -> Retrieval:
    """Two tokens of a heading, and as many of each sentence as it has words."""
    passages = []
    for one in retrieval.passages:
        sizes = [2, *(len(s.of(one.passage.text).split()) for s in one.sentences)]
        numbers = np.repeat(np.arange(len(sizes)), sizes).astype(np.uint8)
        tokens = TokenCodes(codes=numbers[:, None], counts=np.array(sizes, np.int32))
        passages.append(replace(one, tokens=tokens))
    return replace(retrieval, passages=tuple(passages))


@given(texts=contexts, keep=st.floats(0, 1), seed=st.integers(0, 99))
def test_the_rest_is_all_that_the_other_sees(texts: list[str], keep: float, seed: int) -> None:
    """Sentences, their vectors, phrases and token codes: as if the passages had nothing else."""
    retrieval = with_codes(compressible(texts, seed=seed))
    top = {(e.passage.id, s) for e in TOP(retrieval, keep).excerpts for s in e.sentences}
    seen = Seen()
    of(seen)(retrieval, keep)
    whole = {one.passage.id: one for one in retrieval.passages}
    cuts = seen.retrievals[0].passages if seen.retrievals else ()
    others = [(i, s) for i, one in whole.items() for s in one.sentences if (i, s) not in top]
    assert len(others) == sum(len(cut.sentences) for cut in cuts)
    left = iter(others)
    for cut in cuts:
        source = whole[cut.passage.id]
        text = cut.passage.text
        assert "".join(text.split()) == "".join("".join(s.of(text).split()) for s in cut.sentences)
        assert cut.phrases is not None
        assert source.phrases is not None
        assert cut.tokens is not None
        assert cut.tokens.codes[:2].tolist() == [[0], [0]]
        at, token = 0, 2
        for row, sentence in enumerate(cut.sentences):
            _, original = next(left)
            assert sentence.of(text) == original.of(source.passage.text)
            place = source.sentences.index(original)
            assert (cut.sentence_vectors[row] == source.sentence_vectors[place]).all()
            here = (source.phrases.starts >= original.start) & (source.phrases.ends <= original.end)
            count = int(here.sum())
            by = sentence.start - original.start
            for name in ("starts", "ends"):
                moved = getattr(cut.phrases, name)[at : at + count]
                assert (moved == getattr(source.phrases, name)[here] + by).all()
            for name in ("words", "information", "protected", "clauses"):
                same = getattr(cut.phrases, name)[at : at + count]
                assert (same == getattr(source.phrases, name)[here]).all()
            tokens = int(cut.tokens.counts[row + 1])
            assert set(cut.tokens.codes[token : token + tokens].ravel()) == {place + 1}
            at, token = at + count, token + tokens
        assert at == len(cut.phrases.starts)
        assert token == len(cut.tokens.codes)


@given(texts=contexts, keep=st.floats(0, 1), seed=st.integers(0, 99))
def test_both_parts_together_are_the_passages(texts: list[str], keep: float, seed: int) -> None:
    retrieval = compressible(texts, seed=seed)
    compressed = of(Seen())(retrieval, keep)
    assert compressed.excerpts == tuple(
        Excerpt(passage=one.passage, sentences=one.sentences) for one in retrieval.passages
    )
    assert compressed.kept == compressed.sentences


@given(texts=contexts, keep=st.floats(0, 1), seed=st.integers(0, 99), name=st.sampled_from(NAMES))
def test_the_top_sentences_are_left_whole_and_the_others_as_they_are_left_alone(
    texts: list[str], keep: float, seed: int, name: str
) -> None:
    retrieval = compressible(texts, seed=seed)
    compressed = cast("Compressor", make(f"top+{name}"))(retrieval, keep)
    top = {(e.passage.id, s) for e in TOP(retrieval, keep).excerpts for s in e.sentences}
    left = {(e.passage.id, s) for e in compressed.excerpts for s in e.sentences}
    assert top <= left
    assert compressed.kept >= len(top)
    known = {one.passage.id: one for one in retrieval.passages}
    for excerpt in compressed.excerpts:
        assert excerpt.passage is known[excerpt.passage.id].passage
        assert list(excerpt.sentences) == sorted(excerpt.sentences, key=lambda s: s.start)
        for span in excerpt.sentences:
            assert any(
                s.start <= span.start and span.end <= s.end
                for s in known[excerpt.passage.id].sentences
            )


def test_a_summary_stands_beside_the_sentences_that_were_kept() -> None:
    retrieval = compressible(["Aa is. Bb is.", "Cc is. Dd is."])
    compressed = of(Seen("In short."), keep=0.25)(retrieval, None)
    (kept,) = [e for e in compressed.excerpts if e.sentences]
    assert kept.summary == "In short."
    assert [e.summary for e in compressed.excerpts] == ["In short.", "In short."]
    assert (compressed.kept, compressed.sentences) == (1, 4)
    assert compressed.usage == Usage(input=3)
    assert compressed.remarks == ("Seen.",)


def test_of_a_passage_that_is_kept_whole_nothing_is_seen() -> None:
    retrieval = compressible(["Aa is.", "Bb is."])
    seen = Seen("In short.")
    compressed = of(seen)(retrieval, 0.5)
    assert len(seen.retrievals[0].passages) == 1
    assert sorted(e.summary or "" for e in compressed.excerpts) == ["", "In short."]
    assert of(seen)(retrieval, 1.0).usage == Usage()
    assert len(seen.retrievals) == 1, "there was nothing left for it"


def test_spaces_between_neighbours_stay_and_gaps_are_one() -> None:
    retrieval = compressible(["Aa is.\n\nBb is. Cc is. Dd is."], dim=2)
    (one,) = retrieval.passages
    vectors = np.array([[0, 127], [0, 127], [127, 0], [0, 127]], np.int8)
    pointed = replace(
        retrieval,
        passages=(replace(one, sentence_vectors=vectors),),
        query_vector=np.array([1, 0], np.float32),
    )
    seen = Seen()
    of(seen)(pointed, 0.25)
    assert seen.retrievals[0].passages[0].passage.text == "Aa is.\n\nBb is. Dd is."


def test_a_tenth_is_kept_whole_unless_told() -> None:
    retrieval = compressible([" ".join(f"Line {i} is here." for i in range(40))])
    assert DEFAULT_KEEP == 0.1
    for made, keep, kept in ((of(Seen("x")), None, 4), (of(Seen("x"), 0.3), None, 12)):
        assert made(retrieval, keep).kept == kept
    assert of(Seen("x"), 0.3)(retrieval, 0.2).kept == 8


def test_what_it_leaves_and_takes_is_of_both() -> None:
    retrieval = compressible(WRITTEN)
    made = of(Seen(share=0.3))
    assert made.expected_ratio(None) == pytest.approx(0.1 + 0.9 * 0.3)
    assert made.expected_ratio(0.5) == pytest.approx(0.5 + 0.5 * 0.3)
    assert made.seconds(retrieval, None) == pytest.approx(2 + TOP.seconds(retrieval, 0.1))
    assert made.extractive
    assert not of(Seen("x")).extractive


@pytest.mark.parametrize("keep", [-0.1, 1.1, float("nan")])
def test_a_share_is_between_nothing_and_all(keep: float) -> None:
    with pytest.raises(ValueError, match="0 to 1"):
        of(Seen())(compressible(WRITTEN), keep)
    with pytest.raises(ValueError, match="0 to 1"):
        of(Seen(), keep)


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("top+nothing", CascadeName(top="top", share=None, rest="nothing")),
        ("top:0.2+query_summary", CascadeName(top="top", share=0.2, rest="query_summary")),
        ("top:1+x", CascadeName(top="top", share=1.0, rest="x")),
        ("top:.05+top+x", CascadeName(top="top", share=0.05, rest="top+x")),
        ("leancontext", None),
        ("top:2+x", None),
        ("top:1.5+x", None),
        ("top:+x", None),
        ("top+", None),
        ("+x", None),
    ],
)
def test_a_name_is_taken_apart(name: str, parsed: CascadeName | None) -> None:
    assert parse(name) == parsed


@pytest.mark.parametrize(
    "name",
    [
        "top+leancontext",
        "top:0.2+semantic_rewrite",
        "top+top:0.3+selective_context",
        "pruner:0.1+selective_context",
    ],
)
def test_a_cascade_is_made_by_name(name: str) -> None:
    assert known(name)
    assert make(name).name == name


@pytest.mark.parametrize(
    "name",
    [
        "top+none",
        "bottom+leancontext",
        "top:9+leancontext",
        "none",
        "",
        "top+" * (MOST_CASCADES + 1) + "leancontext",
        "top+" * 5_000 + "leancontext",
    ],
    ids=range(7),
)
def test_a_name_that_nobody_has_makes_none(name: str) -> None:
    assert not known(name)
    with pytest.raises(KeyError):
        make(name)


def test_every_name_is_known_alone_and_in_a_cascade() -> None:
    assert all(known(name) and known(f"top:0.1+{name}") for name in COMPRESSORS)


def test_it_spends_where_the_other_does() -> None:
    spends = make("top+query_summary")
    assert isinstance(spends, RewritingCascade)
    assert isinstance(spends, Rewriter)
    assert not isinstance(make("top+selective_context"), Rewriter)


def task(retrieval: Retrieval) -> Task:
    return Task(query=retrieval.query, retrieval=retrieval, model="openai:test", max_tokens=None)


@pytest.mark.anyio
async def test_a_rewriter_is_sent_the_rest_and_its_texts_stand_beside_the_kept() -> None:
    retrieval = compressible(["The dose was 5 mg. It helped. It cost little."])
    whole = task(retrieval)
    made = RewritingCascade(name="top+it", top=TOP, rest=QuerySummary(), keep=0.3)
    (call,) = made.calls(whole, None)
    (kept,) = TOP(retrieval, 0.3).excerpts[0].sentences
    text = retrieval.passages[0].passage.text
    assert kept.of(text) not in call.messages[1].content
    other = next(s for s in retrieval.passages[0].sentences if s != kept)
    reply = SummaryReply(
        summaries=[Summary(passage="P1", summary=f"{other.of(text)} All was well.")]
    )
    model = ScriptedModel([reply])
    compressed = await made(whole, None, Structured(model))
    assert tuple(model.calls) == (call,)
    (excerpt,) = compressed.excerpts
    assert excerpt.passage is retrieval.passages[0].passage
    assert excerpt.sentences == tuple(sorted((kept, other), key=lambda s: s.start))
    assert excerpt.summary == "All was well."
    assert (compressed.kept, compressed.usage) == (2, Usage(input=100, output=10))
    assert made.expected_ratio(None) == pytest.approx(0.3 + 0.7 * 0.2)


@pytest.mark.anyio
async def test_without_a_rest_nothing_is_sent() -> None:
    whole = task(compressible(WRITTEN[:2]))
    made = RewritingCascade(name="top+it", top=TOP, rest=QuerySummary())
    assert made.calls(whole, 1.0) == ()
    compressed = await made(whole, 1.0, ScriptedModel([]))
    assert spans(compressed) == {"t:0": [WRITTEN[0]], "t:1": [WRITTEN[1]]}
    empty = await made(task(compressible(())), None, ScriptedModel([]))
    assert (empty.excerpts, empty.usage) == ((), Usage())


def test_a_part_of_a_sentence_that_the_top_shows_is_not_kept() -> None:
    """Another top than cosine may shorten, too: only what it leaves whole is kept."""
    retrieval = compressible(WRITTEN[:3])
    seen = Seen()
    made = Cascade(name="it", top=SelectiveContext(), rest=seen, keep=0.4)
    compressed = made(retrieval, None)
    left = SelectiveContext()(retrieval, 0.4)
    parts = {s for e in left.excerpts for s in e.sentences}
    every = {s for one in retrieval.passages for s in one.sentences}
    assert parts - every, "it shortens some"
    assert sum(len(one.sentences) for one in seen.retrievals[0].passages) == 3 - left.kept
    assert compressed.kept == 3


def test_offsets_point_into_the_whole_passage() -> None:
    """What is left of the rest is what would be left of it as a passage of its own, word for word."""
    retrieval = compressible([" ".join(WRITTEN)])
    (whole,) = retrieval.passages
    seen = Seen()
    of(seen, 0.2)(retrieval, None)
    alone = spans(SelectiveContext()(seen.retrievals[0], None))["t:0"]
    compressed = of(SelectiveContext(), 0.2)(retrieval, None)
    (top,) = TOP(retrieval, 0.2).excerpts
    rest = [s for s in compressed.excerpts[0].sentences if s not in top.sentences]
    assert [s.of(whole.passage.text) for s in rest] == alone
