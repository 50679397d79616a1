"""Compressed RAG over what a model writes: labelled, never quotable, never longer, and paid for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.errors import ProviderOverloaded
from posology.llm.structured import Structured
from posology.query import make_query
from posology.seams import Compressor, Rewriter
from posology.testing import ScriptedModel
from posology.types import Answer, Passage, Refusal, Stage, Task, Usage
from prompts.answer import AnswerReply
from prompts.fence import shown
from strategies.compressed import NOTHING_LEFT, CompressedRag
from strategies.compression.leancontext import LeanContext
from strategies.ladder import Ladder
from tests.support.replies import copying
from tests.support.rewriters import Short, Summaries, Summing
from tests.support.tasks import task_of

pytestmark = pytest.mark.anyio

FIRST = Passage(
    id="n:1", text="Aspirin lowered mortality in adults after stroke. It was tolerated."
)
SECOND = Passage(id="n:2", text="Warfarin did not lower it. Bleeding was common in the elderly.")
USED = Usage(input=100, output=10)


def task(*passages: Passage) -> Task:
    return task_of(make_query("Does aspirin lower mortality?"), passages or (FIRST, SECOND))


def says(*quotes: str, answerable: bool = True) -> AnswerReply:
    return copying("It does.", *(("P1", quote) for quote in quotes), answerable=answerable)


async def ask(
    strategy: CompressedRag | Ladder, *script: object
) -> tuple[Answer | Refusal, ScriptedModel]:
    model = ScriptedModel(script, usage=USED)  # type: ignore[arg-type]
    return await strategy(task(), Structured(model)), model


def test_a_rewriter_is_told_from_a_compressor() -> None:
    assert isinstance(Short(), Rewriter)
    assert not isinstance(LeanContext(), Rewriter)
    assert not isinstance(Summing(), Rewriter)
    local: Compressor = Summing()
    assert CompressedRag(compressor=local).count(task()) == 1
    assert CompressedRag(compressor=Short()).count(task()) == 2


async def test_what_it_writes_is_shown_and_what_it_took_is_told() -> None:
    written = Summaries(summaries=["Aspirin helped.", ""])
    outcome, model = await ask(CompressedRag(compressor=Short()), written, says())
    assert [call.stage for call in model.calls] == [Stage.COMPRESS, Stage.ANSWER]
    shown = model.calls[1].messages[1].content
    assert "Aspirin helped." in shown
    assert "Warfarin" not in shown
    took = outcome.compression
    assert took is not None
    assert (took.compressor, took.extractive, took.usage) == ("short", False, USED)
    assert (took.kept, took.sentences, took.shown) == (0, 4, 2)
    assert took.words == len(f"{FIRST.text} {SECOND.text}".split())
    assert outcome.shown == took.shown / took.words
    note = outcome.notes[-1]
    assert "summaries by short: quotes were checked against the passages" in note
    assert "1 of 2 passages" in note


async def test_only_a_quote_that_the_passage_has_stands() -> None:
    written = Summaries(summaries=["Aspirin lowered mortality in everybody.", ""])
    quotes = says("Aspirin lowered mortality in everybody", "Aspirin lowered mortality in adults")
    outcome, _ = await ask(CompressedRag(compressor=Short()), written, quotes)
    assert isinstance(outcome, Answer)
    assert [one.quote for one in outcome.citations] == ["Aspirin lowered mortality in adults"]
    assert outcome.dropped_quotes == 1


@given(text=st.text(max_size=200), whole=st.integers(0, 2))
async def test_nothing_is_shown_that_is_longer_than_its_passage(text: str, whole: int) -> None:
    """What estimates bound it by: the bytes of the passages."""
    strategy = CompressedRag(compressor=Short(whole=whole))
    outcome, model = await ask(strategy, Summaries(summaries=[text, text]), says())
    assert outcome.compression is not None
    for excerpt in model.calls[-1].excerpts:
        sentences = "".join(s.of(excerpt.passage.text) for s in excerpt.sentences)
        size = len((sentences + (excerpt.summary or "")).encode("utf-8", "surrogatepass"))
        assert size <= len(excerpt.passage.text.encode())
        assert excerpt.summary is not None or len(excerpt.sentences) == 2


async def test_space_between_sentences_is_shown_and_counts() -> None:
    """Else a text of long gaps has room for a summary beyond what was reserved for it."""
    gap = Passage(id="n:3", text="Aspirin lowered mortality." + "\n" * 120 + "Bleeding was rare.")
    model = ScriptedModel([Summaries(summaries=["x" * 100]), says()], usage=USED)
    await CompressedRag(compressor=Short(whole=2))(task(gap), Structured(model))
    (excerpt,) = model.calls[-1].excerpts
    assert excerpt.summary is None
    assert len(shown(excerpt)) == len(gap.text)


async def test_a_failed_call_of_its_own_is_a_failed_question() -> None:
    down = ProviderOverloaded("down", provider="openai", model="openai:test")
    with pytest.raises(ProviderOverloaded):
        await ask(CompressedRag(compressor=Short()), down)


async def test_where_it_leaves_nothing_it_was_paid_for_all_the_same() -> None:
    written = Summaries(summaries=["", ""])
    outcome, model = await ask(CompressedRag(compressor=Short()), written)
    assert isinstance(outcome, Refusal)
    assert outcome.reason == NOTHING_LEFT
    assert outcome.compression is not None
    assert outcome.compression.usage == USED
    assert len(model.calls) == 1


async def test_nobody_knows_its_call_before_it_wrote() -> None:
    with pytest.raises(TypeError, match="short"):
        CompressedRag(compressor=Short()).call(task())


async def test_a_ladder_adds_up_what_compressing_took_at_each_rung() -> None:
    ladder = Ladder(CompressedRag(compressor=Short()), rungs=(1, 2))
    outcome, model = await ask(
        ladder,
        Summaries(summaries=["Aspirin helped."]),
        says(answerable=False),
        # what the first rung wrote of the first passage stays
        Summaries(summaries=["Warfarin did not."]),
        says("Aspirin lowered mortality in adults"),
    )
    assert len(model.calls) == 4
    took = outcome.compression
    assert took is not None
    assert (took.usage, took.sentences, took.shown) == (USED + USED, 6, 2 + 2 + 3)
    assert took.words == 2 * len(FIRST.text.split()) + len(SECOND.text.split())
    # the calls of a rung are all of its calls
    assert [rung.usage for rung in outcome.rungs] == [USED + USED] * 2


async def test_usage_that_a_provider_does_not_tell_is_unknown_in_the_sum() -> None:
    model = ScriptedModel(
        [Summaries(summaries=["Aspirin helped.", ""]), says(answerable=False)] * 2, usage=None
    )
    ladder = Ladder(CompressedRag(compressor=Short()), rungs=(1, 2))
    outcome = await ladder(task(), Structured(model))
    assert outcome.compression is not None
    assert outcome.compression.usage is None


async def test_a_local_summary_is_labelled_too_and_took_no_calls() -> None:
    outcome, model = await ask(CompressedRag(compressor=Summing()), says())
    took = outcome.compression
    assert took is not None
    assert (took.extractive, took.usage) == (False, Usage())
    assert "summaries by summing" in outcome.notes[-1]
    assert model.calls[0].excerpts[0].summary == "It helps."
