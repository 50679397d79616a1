"""What every compressor must do: each of ``COMPRESSORS``, and some cascades.

The files beside this one run it, each for the compressors of one unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.errors import ProviderError, RequestRejected
from posology.llm.structured import Structured
from posology.testing import ScriptedModel
from posology.types import Excerpt, Stage, Usage
from prompts.answer import render_answer
from tests.support.compression import HOSTILE, WRITTEN, compressible, contexts
from tests.support.compression_checks import CHECKS, arrays, shown_words, well_formed
from tests.support.compression_harnesses import (
    CASCADES,
    HARNESSES,
    MODEL,
    SPENDING,
    Made,
    Unit,
    build,
    task,
)
from tests.support.examples import examples

keeps = st.sampled_from((None, 0.0, 0.05, 0.1, 0.25, 0.3, 0.4, 0.5, 0.7, 0.8, 0.9, 1.0))
#: shares at which what needs no search is tried
some = pytest.mark.parametrize("keep", [None, 0.0, 0.3, 1.0])


def names_of(unit: Unit) -> tuple[str, ...]:
    """The compressors and cascades of one unit."""
    return tuple(name for name, h in {**HARNESSES, **CASCADES}.items() if h.unit is unit)


def holds(**drawn: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A test over what is drawn, as often as the compressor's harness allows."""

    def over(test: Callable[..., None]) -> Callable[..., None]:
        @pytest.mark.hypothesis
        def run(self: CompressorContract, made: Made) -> None:
            @examples(made.harness.examples)
            @given(**drawn)
            def each(**values: Any) -> None:
                test(self, made, **values)

            each()

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return over


class CompressorContract:
    """Tests that run for each of ``names``."""

    names: ClassVar[tuple[str, ...]]

    def test_it_is_named_as_it_is_made(self, made: Made) -> None:
        assert made.compressor.name == made.name
        assert made.spends == (made.name in SPENDING)
        assert made(compressible(WRITTEN), 0.5).compressor == made.name

    @holds(texts=contexts, keep=keeps, seed=st.integers(0, 999))
    def test_what_it_leaves(
        self, made: Made, texts: list[str], keep: float | None, seed: int
    ) -> None:
        retrieval = compressible(texts, seed=seed)
        compressed = made(retrieval, keep)
        for check in CHECKS:
            check(made, retrieval, keep, compressed)
        assert made(compressible(texts, seed=seed), keep) == compressed, (
            "it differs from run to run"
        )

    @holds(texts=contexts, seed=st.integers(0, 99))
    def test_a_greater_share_leaves_more_up_to_all(
        self, made: Made, texts: list[str], seed: int
    ) -> None:
        retrieval = compressible(texts, seed=seed)
        found = [made(retrieval, keep) for keep in (0.0, 0.4, 1.0)]
        shown = [shown_words(compressed) for compressed in found]
        # what a model writes in between, or what another compressor leaves, is not a matter of the share alone
        if made.harness.unit in (Unit.ASKED, Unit.TOP):
            del shown[1]
        assert shown == sorted(shown)
        whole = found[-1]
        assert [e.passage for e in whole.excerpts] == [r.passage for r in retrieval.passages]
        if made.extractive:
            assert whole.excerpts == tuple(
                Excerpt(passage=one.passage, sentences=one.sentences) for one in retrieval.passages
            )
            assert whole.kept == whole.sentences

    def test_two_threads_do_not_disturb_each_other(self, made: Made) -> None:
        asked = [compressible(WRITTEN[i : i + 4], seed=i) for i in range(8)]
        alone = [made(one, 0.5) for one in asked]
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(lambda one: made(one, 0.5), asked)) == alone

    def test_another_of_the_same_name_leaves_the_same(self, made: Made, tmp_path: Path) -> None:
        retrieval = compressible(WRITTEN)
        assert build(made.name, tmp_path)(retrieval, 0.5) == made(retrieval, 0.5)

    @some
    def test_of_nothing_nothing_is_left(self, made: Made, keep: float | None) -> None:
        compressed = made(compressible(()), keep)
        assert (compressed.excerpts, compressed.kept, compressed.sentences) == ((), 0, 0)

    @some
    def test_it_manages_with_what_no_annotator_and_no_codec_saw(
        self, made: Made, keep: float | None
    ) -> None:
        retrieval = compressible(WRITTEN, annotate=None)
        well_formed(made(retrieval, keep), retrieval)
        if not made.spends:
            well_formed(made.reader(retrieval, keep), retrieval)

    @pytest.mark.parametrize("keep", [-0.1, 1.1, float("nan"), float("inf")])
    def test_a_share_is_between_nothing_and_all(self, made: Made, keep: float) -> None:
        with pytest.raises(ValueError, match="0 to 1"):
            made(compressible(WRITTEN), keep)

    def test_what_it_reads_it_does_not_change(self, made: Made) -> None:
        retrieval = compressible(WRITTEN)
        before = arrays(retrieval)
        made(retrieval, 0.1)
        for one, copy in zip(arrays(retrieval), before, strict=True):
            assert np.array_equal(one, copy)

    def test_it_expects_a_share_to_be_left(self, made: Made) -> None:
        compressor = made.compressor
        expected = [compressor.expected_ratio(keep) for keep in (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)]
        assert expected == sorted(expected)
        assert all(0 <= left <= 1 for left in (*expected, compressor.expected_ratio(None)))
        with pytest.raises(ValueError, match="0 to 1"):
            compressor.expected_ratio(1.1)

    @some
    def test_it_expects_to_take_time(self, reader: Made, keep: float | None) -> None:
        asked = [
            reader.harness.prepare(compressible(texts)) for texts in ((), WRITTEN[:1], WRITTEN)
        ]
        expected = [reader.reader.seconds(retrieval, keep) for retrieval in asked]
        assert all(0 <= seconds < math.inf for seconds in expected)
        assert expected == sorted(expected)

    @holds(kind=st.sampled_from(sorted(HOSTILE)), alone=st.booleans(), keep=keeps)
    def test_a_hostile_passage_breaks_nothing(
        self, made: Made, kind: str, *, alone: bool, keep: float | None
    ) -> None:
        _survives(made, kind, alone=alone, keep=keep)

    @pytest.mark.exhaustive
    @pytest.mark.parametrize("kind", sorted(HOSTILE))
    def test_no_hostile_passage_breaks_anything_at_any_share(self, made: Made, kind: str) -> None:
        for alone, keep in product((True, False), (None, 0.0, 0.4, 1.0)):
            _survives(made, kind, alone=alone, keep=keep)


class RewriterContract(CompressorContract):
    """The same with tests for those of ``names`` that ask a model."""

    @pytest.mark.anyio
    @some
    async def test_a_rewriter_sends_what_it_says_that_it_sends(
        self, rewriter: Made, keep: float | None
    ) -> None:
        model = rewriter.model()
        retrieval = compressible(WRITTEN)
        asked = task(retrieval)
        compressed = await rewriter.writer(asked, keep, Structured(model))
        assert tuple(model.calls) == rewriter.writer.calls(asked, keep)
        # the script's replies take as many tokens each
        assert compressed.usage == Usage(input=100 * len(model.calls), output=10 * len(model.calls))
        for call in model.calls:
            assert call.stage is Stage.COMPRESS
            assert call.max_tokens > 0
            known = {one.passage.id: one.sentences for one in retrieval.passages}
            for excerpt in call.excerpts:
                assert len(excerpt.sentences) <= len(known[excerpt.passage.id])

    @pytest.mark.anyio
    async def test_a_call_that_fails_is_not_made_up_for(self, rewriter: Made) -> None:
        model = ScriptedModel([RequestRejected("too long", provider="openai", model=MODEL)])
        with pytest.raises(ProviderError, match="too long"):
            await rewriter.writer(task(compressible(WRITTEN)), 0.3, Structured(model))
        assert len(model.calls) == 1

    @pytest.mark.anyio
    @pytest.mark.parametrize("text", ["{}", "no JSON", '{"summaries": 5, "passages": 5}'])
    async def test_a_reply_that_cannot_be_read_is_an_error(self, rewriter: Made, text: str) -> None:
        with pytest.raises(ProviderError):
            await rewriter.writer(
                task(compressible(WRITTEN)), 0.3, Structured(ScriptedModel(lambda _: text))
            )


def _survives(made: Made, kind: str, *, alone: bool, keep: float | None) -> None:
    retrieval = compressible((HOSTILE[kind],) if alone else (WRITTEN[0], HOSTILE[kind], WRITTEN[1]))
    compressed = made(retrieval, keep)
    well_formed(compressed, retrieval)
    if compressed.excerpts:
        assert render_answer(retrieval.query, compressed.excerpts).messages
