"""What every compressor must do: each of ``COMPRESSORS``, and some cascades."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posology.errors import ProviderError, RequestRejected
from posology.llm.structured import Structured
from posology.testing import ScriptedModel
from posology.text.quotes import MIN_TOKENS, DropReason, Span, locate
from posology.types import Excerpt, Stage, Usage
from prompts.answer import Quote, render_answer
from strategies.compression import COMPRESSORS
from strategies.evidence import check
from tests.support.compression import HOSTILE, WRITTEN, compressible, contexts
from tests.support.compression_checks import (
    arrays,
    protected_beside,
    sentences_of,
    shown_words,
    well_formed,
    words,
)
from tests.support.compression_harnesses import (
    CASCADES,
    MADE_UP,
    MODEL,
    SPENDING,
    Made,
    Unit,
    build,
    task,
)

Builder = Callable[[str], Made]

NAMES = (*COMPRESSORS, *CASCADES)
every = pytest.mark.parametrize("name", NAMES)
#: those that ask a model
spending = pytest.mark.parametrize("name", [name for name in NAMES if name in SPENDING])
keeps = st.sampled_from((None, 0.0, 0.05, 0.1, 0.25, 0.4, 0.8, 1.0))
shares = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    """Builds each compressor once."""
    made: dict[str, Made] = {}

    def get(name: str) -> Made:
        if name not in made:
            made[name] = build(name, tmp_path_factory.mktemp("compressor"))
        return made[name]

    return get


def holds(**drawn: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A test of every compressor over what is drawn, as often as its harness allows."""

    def over(test: Callable[..., None]) -> Callable[..., None]:
        @every
        def run(name: str, built: Builder) -> None:
            made = built(name)

            @settings(max_examples=made.harness.examples, deadline=None)
            @given(**drawn)
            def each(**values: Any) -> None:
                test(made, **values)

            each()

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return over


@every
def test_it_is_named_as_it_is_made(name: str, built: Builder) -> None:
    made = built(name)
    assert made.compressor.name == name
    assert made.spends == (name in SPENDING)
    assert made(compressible(WRITTEN), 0.5).compressor == name


@holds(texts=contexts, keep=keeps, seed=st.integers(0, 99))
def test_what_is_left_are_spans_of_sentences_in_order(
    made: Made, texts: list[str], keep: float | None, seed: int
) -> None:
    retrieval = compressible(texts, seed=seed)
    well_formed(made(retrieval, keep), retrieval)


@holds(texts=contexts, keep=keeps, seed=st.integers(0, 99))
def test_only_what_may_write_summaries_does(
    made: Made, texts: list[str], keep: float | None, seed: int
) -> None:
    compressed = made(compressible(texts, seed=seed), keep)
    assert compressed.extractive or not made.extractive


@holds(texts=contexts, keep=keeps, seed=st.integers(0, 99))
def test_what_is_shown_can_be_quoted(
    made: Made, texts: list[str], keep: float | None, seed: int
) -> None:
    """But for what a denial before it governs: that is shown, too, and a quote from there on stands."""
    retrieval = compressible(texts, seed=seed)
    for excerpt in made(retrieval, keep).excerpts:
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


@holds(texts=contexts, keep=st.sampled_from(shares), seed=st.integers(0, 99))
def test_the_share_is_honoured_in_its_unit(
    made: Made, texts: list[str], keep: float, seed: int
) -> None:
    retrieval = compressible(texts, seed=seed)
    compressed = made(retrieval, keep)
    there = {(r.passage.id, s) for r in retrieval.passages for s in r.sentences}
    left = {(e.passage.id, s) for e in compressed.excerpts for s in e.sentences}
    assert compressed.sentences == len(there)
    assert 0 <= compressed.kept <= len(left & there)
    if made.harness.unit is Unit.SENTENCES:
        assert keep * len(there) - 1e-9 <= compressed.kept < keep * len(there) + 1
    if made.harness.unit is Unit.TOP:
        assert compressed.kept >= keep * len(there) - 1e-9
    if made.harness.unit is Unit.WORDS:
        # what a word is, is not counted alike by all: "p < 0.001" is one word or three
        assert shown_words(compressed) <= (keep + 0.05) * words(retrieval) + 1


@holds(texts=contexts, seed=st.integers(0, 99))
def test_a_greater_share_leaves_more(made: Made, texts: list[str], seed: int) -> None:
    retrieval = compressible(texts, seed=seed)
    found = [shown_words(made(retrieval, keep)) for keep in (0.0, 0.4, 1.0)]
    # what a model writes in between, or what another compressor leaves, is not a matter of the share alone
    if made.harness.unit in (Unit.ASKED, Unit.TOP):
        del found[1]
    assert found == sorted(found)


@holds(texts=contexts)
def test_all_is_left_of_all(made: Made, texts: list[str]) -> None:
    retrieval = compressible(texts)
    compressed = made(retrieval, 1.0)
    assert [e.passage for e in compressed.excerpts] == [r.passage for r in retrieval.passages]
    if made.extractive:
        assert compressed.excerpts == tuple(
            Excerpt(passage=one.passage, sentences=one.sentences) for one in retrieval.passages
        )
        assert compressed.kept == compressed.sentences


@holds(texts=contexts, keep=keeps, seed=st.integers(0, 99))
def test_the_same_is_left_every_time(
    made: Made, texts: list[str], keep: float | None, seed: int
) -> None:
    first = made(compressible(texts, seed=seed), keep)
    assert made(compressible(texts, seed=seed), keep) == first


@every
def test_two_threads_do_not_disturb_each_other(name: str, built: Builder) -> None:
    made = built(name)
    asked = [compressible(WRITTEN[i : i + 4], seed=i) for i in range(8)]
    alone = [made(one, 0.5) for one in asked]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda one: made(one, 0.5), asked)) == alone


@every
def test_another_of_the_same_name_leaves_the_same(
    name: str, built: Builder, tmp_path_factory: pytest.TempPathFactory
) -> None:
    again = build(name, tmp_path_factory.mktemp("again"))
    retrieval = compressible(WRITTEN)
    assert again(retrieval, 0.5) == built(name)(retrieval, 0.5)


@every
@pytest.mark.parametrize("keep", [None, 0.0, 0.3, 1.0])
def test_of_nothing_nothing_is_left(name: str, built: Builder, keep: float | None) -> None:
    compressed = built(name)(compressible(()), keep)
    assert (compressed.excerpts, compressed.kept, compressed.sentences) == ((), 0, 0)


@every
@pytest.mark.parametrize("keep", [None, 0.0, 0.3, 1.0])
def test_it_manages_with_what_no_annotator_and_no_codec_saw(
    name: str, built: Builder, keep: float | None
) -> None:
    retrieval = compressible(WRITTEN, annotate=None)
    made = built(name)
    well_formed(made(retrieval, keep), retrieval)
    if not made.spends:
        well_formed(made.reader(retrieval, keep), retrieval)


@every
@pytest.mark.parametrize("keep", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_share_is_between_nothing_and_all(name: str, built: Builder, keep: float) -> None:
    with pytest.raises(ValueError, match="0 to 1"):
        built(name)(compressible(WRITTEN), keep)


@holds(texts=contexts, keep=keeps, seed=st.integers(0, 999))
def test_a_fragment_keeps_its_negations_numbers_and_doses(
    made: Made, texts: list[str], keep: float | None, seed: int
) -> None:
    """Read off the text alone: nothing that annotates it is trusted."""
    retrieval = compressible(texts, seed=seed)
    for excerpt in made(retrieval, keep).excerpts:
        text = excerpt.passage.text
        for at in protected_beside(text, excerpt.sentences, sentences_of(retrieval, excerpt)):
            assert any(s.start <= at.start and at.end <= s.end for s in excerpt.sentences), (
                f"{at.of(text)!r} is missing beside {[s.of(text) for s in excerpt.sentences]}"
            )


@every
def test_what_it_reads_it_does_not_change(name: str, built: Builder) -> None:
    made = built(name)
    retrieval = compressible(WRITTEN)
    before = arrays(retrieval)
    made(retrieval, 0.1)
    for one, copy in zip(arrays(retrieval), before, strict=True):
        assert np.array_equal(one, copy)


@every
def test_it_expects_a_share_to_be_left(name: str, built: Builder) -> None:
    compressor = built(name).compressor
    expected = [compressor.expected_ratio(keep) for keep in shares]
    assert expected == sorted(expected)
    assert all(0 <= left <= 1 for left in (*expected, compressor.expected_ratio(None)))
    with pytest.raises(ValueError, match="0 to 1"):
        compressor.expected_ratio(1.1)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in SPENDING])
@pytest.mark.parametrize("keep", [None, 0.0, 0.3, 1.0])
def test_it_expects_to_take_time(name: str, built: Builder, keep: float | None) -> None:
    made = built(name)
    asked = [made.harness.prepare(compressible(texts)) for texts in ((), WRITTEN[:1], WRITTEN)]
    expected = [made.reader.seconds(retrieval, keep) for retrieval in asked]
    assert all(0 <= seconds < math.inf for seconds in expected)
    assert expected == sorted(expected)


@every
@pytest.mark.parametrize("kind", sorted(HOSTILE))
def test_a_hostile_passage_breaks_nothing(name: str, built: Builder, kind: str) -> None:
    made = built(name)
    mixed = ((HOSTILE[kind],), (WRITTEN[0], HOSTILE[kind], WRITTEN[1]))
    for texts, keep in product(mixed, (None, 0.0, 0.4, 1.0)):
        retrieval = compressible(texts)
        compressed = made(retrieval, keep)
        well_formed(compressed, retrieval)
        if compressed.excerpts:
            assert render_answer(retrieval.query, compressed.excerpts).messages


@holds(texts=contexts, keep=keeps, seed=st.integers(0, 99))
def test_a_summary_is_shown_as_one_and_never_quoted(
    made: Made, texts: list[str], keep: float | None, seed: int
) -> None:
    retrieval = compressible(texts, seed=seed)
    compressed = made(retrieval, keep)
    for i, excerpt in enumerate(compressed.excerpts):
        if excerpt.summary is None:
            continue
        assert MADE_UP not in excerpt.summary
        (line,) = [
            line
            for line in render_answer(retrieval.query, (excerpt,)).messages[-1].content.split("\n")
            if " ".join(excerpt.summary.split()) in line
        ]
        assert line.startswith("summary (")
        verified = check([Quote(passage=f"P{i + 1}", quote=excerpt.summary)], compressed.excerpts)
        for citation in verified.citations:
            assert citation.quote in excerpt.passage.text


@pytest.mark.anyio
@spending
@pytest.mark.parametrize("keep", [None, 0.0, 0.3, 1.0])
async def test_a_rewriter_sends_what_it_says_that_it_sends(
    name: str, built: Builder, keep: float | None
) -> None:
    made, model = built(name), built(name).model()
    retrieval = compressible(WRITTEN)
    asked = task(retrieval)
    compressed = await made.writer(asked, keep, Structured(model))
    assert tuple(model.calls) == made.writer.calls(asked, keep)
    # the script's replies take as many tokens each
    assert compressed.usage == Usage(input=100 * len(model.calls), output=10 * len(model.calls))
    for call in model.calls:
        assert call.stage is Stage.COMPRESS
        assert call.max_tokens > 0
        known = {one.passage.id: one.sentences for one in retrieval.passages}
        for excerpt in call.excerpts:
            assert len(excerpt.sentences) <= len(known[excerpt.passage.id])


@pytest.mark.anyio
@spending
async def test_a_call_that_fails_is_not_made_up_for(name: str, built: Builder) -> None:
    model = ScriptedModel([RequestRejected("too long", provider="openai", model=MODEL)])
    with pytest.raises(ProviderError, match="too long"):
        await built(name).writer(task(compressible(WRITTEN)), 0.3, Structured(model))
    assert len(model.calls) == 1


@pytest.mark.anyio
@spending
@pytest.mark.parametrize("text", ["{}", "no JSON", '{"summaries": 5, "passages": 5}'])
async def test_a_reply_that_cannot_be_read_is_an_error(
    name: str, built: Builder, text: str
) -> None:
    with pytest.raises(ProviderError):
        await built(name).writer(
            task(compressible(WRITTEN)), 0.3, Structured(ScriptedModel(lambda _: text))
        )
