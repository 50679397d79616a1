"""The offline reader where passages are to be shortened for a question."""

from __future__ import annotations

import pytest

from posology.errors import RequestRejected, TruncatedReply
from posology.llm.offline.choice import FILLED, fill
from posology.llm.offline.reader import ExtractiveReader
from posology.llm.offline.scores import Scored
from posology.text.sentences import split
from posology.types import Excerpt, Passage, Stage
from prompts.rewrite import RewriteReply, SummaryReply
from tests.unit.offline.test_reader import WARFARIN, WEATHER, WordEncoder, make_call, words

pytestmark = pytest.mark.anyio

QUESTION = "What was the warfarin dose?"


@pytest.fixture
def reader() -> ExtractiveReader:
    return ExtractiveReader(WordEncoder(), words)


async def shortened(reader: ExtractiveReader, *texts: str, max_tokens: int) -> SummaryReply:
    call = make_call(
        QUESTION, texts, stage=Stage.COMPRESS, schema=SummaryReply, max_tokens=max_tokens
    )
    completion = await reader(call)
    assert words(completion.text) <= max_tokens
    assert isinstance(completion.parsed, SummaryReply)
    return completion.parsed


async def test_the_sentences_most_like_the_question_are_left(reader: ExtractiveReader) -> None:
    reply = await shortened(reader, WEATHER, WARFARIN, max_tokens=20)
    (one,) = reply.summaries
    assert (one.passage, one.summary) == ("P2", "The warfarin starting dose was 5 mg daily.")


async def test_they_stand_in_their_order_and_are_the_passages_own(
    reader: ExtractiveReader,
) -> None:
    reply = await shortened(reader, WEATHER, WARFARIN, max_tokens=200)
    assert [one.passage for one in reply.summaries] == ["P1", "P2"]
    assert [one.summary for one in reply.summaries] == [WEATHER, WARFARIN]


async def test_nothing_is_left_of_nothing(reader: ExtractiveReader) -> None:
    assert (await shortened(reader, "", max_tokens=50)).summaries == []


async def test_what_does_not_fit_is_truncated(reader: ExtractiveReader) -> None:
    with pytest.raises(TruncatedReply):
        await shortened(reader, WARFARIN, max_tokens=5)


async def test_it_writes_nothing_anew(reader: ExtractiveReader) -> None:
    call = make_call(QUESTION, [WARFARIN], stage=Stage.COMPRESS, schema=RewriteReply)
    with pytest.raises(RequestRejected, match="RewriteReply"):
        await reader(call)


@pytest.mark.parametrize(("tokens", "left"), [(0, 1), (5, 1), (12, 2), (18, 3), (1_000, 3)])
def test_half_of_the_bound_is_filled(tokens: int, left: int) -> None:
    text = "One is here. Two is here. Three is here."
    excerpt = Excerpt(passage=Passage(id="p:1", text=text), sentences=split(text))
    scored = [Scored(excerpt=0, sentence=s, score=0.5) for s in excerpt.sentences]
    assert FILLED == 0.5
    assert fill(scored, [excerpt], words, tokens) == scored[:left]
