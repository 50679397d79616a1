from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import anyio
import pytest

from posology.cancellation import checkpoint
from posology.errors import InvalidQuery
from posology.llm.structured import Structured
from posology.query import make_query
from posology.testing import ScriptedModel
from posology.turns import Occupied, taking
from posology.types import Answer, Compressed, Excerpt, Passage, Refusal, Retrieval, Sentence, Task
from prompts.answer import AnswerReply
from strategies.compressed import NOTHING_LEFT, CompressedRag
from tests.support.guess import GUESS
from tests.support.replies import copying
from tests.support.rewriters import Stated
from tests.support.tasks import task_of

pytestmark = pytest.mark.anyio

TEXT = (
    "Aspirin 300 mg was given to adults after stroke, and mortality fell within two weeks. "
    "Bleeding was rare. It did not harm the kidneys of those who took it."
)
NOTE = Passage(id="note:1", text=TEXT)
SILENT = Passage(id="note:2", text="Nothing here bears on it.")


def span(words: str) -> Sentence:
    return Sentence(start=TEXT.index(words), end=TEXT.index(words) + len(words))


@dataclass(frozen=True, kw_only=True)
class Leaves(Stated):
    """A compressor that leaves these words of the first passage."""

    words: tuple[str, ...]
    name: str = "leaves"

    def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:
        spans = tuple(map(span, self.words))
        excerpts = (Excerpt(passage=NOTE, sentences=spans),) if spans else ()
        count = sum(len(one.sentences) for one in retrieval.passages)
        return Compressed(
            excerpts=excerpts,
            kept=round((keep or 0.0) * count),
            sentences=count,
            compressor=self.name,
        )


def task(*passages: Passage) -> Task:
    return task_of(make_query("Does aspirin lower mortality?"), passages)


def says(*quotes: str, answerable: bool = True) -> AnswerReply:
    return copying("It does.", *(("P1", quote) for quote in quotes), answerable=answerable)


@dataclass(frozen=True, kw_only=True)
class Working(Stated):
    """A compressor that does this, and says that it takes so long."""

    work: Callable[[], object]
    needs: float = 0.0
    name: str = "working"

    def seconds(self, retrieval: Retrieval, keep: float | None) -> float:
        del retrieval, keep
        return self.needs

    def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:
        self.work()
        return Leaves(words=())(retrieval, keep)


def leaving(*words: str) -> CompressedRag:
    return CompressedRag(compressor=Leaves(words=words), keep=0.25)


async def compressed_by(compressor: Working) -> Answer | Refusal:
    strategy = CompressedRag(compressor=compressor, seconds=60.0)
    return await strategy(task(NOTE), Structured(ScriptedModel([])))


async def answered(strategy: CompressedRag, reply: AnswerReply) -> Answer:
    answer = await strategy(task(NOTE, SILENT), Structured(ScriptedModel([reply])))
    assert isinstance(answer, Answer)
    return answer


async def test_a_quote_from_a_fragment_stands_at_its_place_in_the_source() -> None:
    strategy = leaving("mortality fell within two weeks.", "Bleeding was rare.")
    answer = await answered(strategy, says("mortality fell within two weeks"))
    (citation,) = answer.citations
    assert TEXT[citation.start : citation.end] == citation.quote
    assert citation.start == TEXT.index("mortality")
    assert answer.strategy == "compressed"


@pytest.mark.parametrize("mark", [" […] ", " [...] ", " ... ", " "])
async def test_a_quote_across_an_omission_does_not_stand(mark: str) -> None:
    strategy = leaving("Aspirin 300 mg was given", "mortality fell within two weeks.")
    quote = f"Aspirin 300 mg was given{mark}mortality fell within two weeks"
    answer = await answered(strategy, says(quote))
    assert answer.citations == ()
    assert answer.dropped_quotes == 1


async def test_a_quote_that_leaves_out_a_negation_does_not_stand() -> None:
    strategy = leaving("It did not", "harm the kidneys of those who took it.")
    answer = await answered(strategy, says("harm the kidneys of those who took it"))
    assert answer.citations == ()


async def test_the_model_is_shown_what_is_left_and_where_something_is_not() -> None:
    model = ScriptedModel([says()])
    strategy = leaving("mortality fell within two weeks.", "Bleeding was rare.")
    await strategy(task(NOTE, SILENT), Structured(model))
    (call,) = model.calls
    shown = "text: […] mortality fell within two weeks. Bleeding was rare. […]\n"
    assert shown in call.messages[1].content
    assert "bears on it" not in call.messages[1].content


async def test_a_reader_of_the_answer_is_told_how_much_was_shown() -> None:
    answer = await answered(leaving("Bleeding was rare."), says("Bleeding was rare."))
    share = len("Bleeding was rare.") / (len(TEXT) + len(SILENT.text))
    (note,) = answer.notes
    assert f"{share:.0%} of the text" in note
    assert "1 of 2 passages" in note
    assert "1 of 4 sentences" in note


async def test_a_refusal_says_it_too() -> None:
    model = ScriptedModel([says(answerable=False)])
    refusal = await leaving("Bleeding was rare.")(task(NOTE), Structured(model))
    assert isinstance(refusal, Refusal)
    assert "1 of 1 passages" in refusal.notes[-1]


async def test_nothing_left_is_refused_without_a_call() -> None:
    model = ScriptedModel([])
    strategy = leaving()
    refusal = await strategy(task(NOTE), Structured(model))
    assert isinstance(refusal, Refusal)
    assert (refusal.reason, refusal.strategy, refusal.shown) == (NOTHING_LEFT, "compressed", 0.0)
    assert refusal.compression is not None
    assert refusal.compression.shown == 0
    assert strategy.call(task(NOTE)) is None
    assert model.calls == []


async def test_it_can_say_its_call_without_making_it() -> None:
    strategy = leaving("Bleeding was rare.")
    model = ScriptedModel([says()])
    await strategy(task(NOTE), Structured(model))
    assert [strategy.call(task(NOTE))] == model.calls


async def test_compressing_does_not_hold_up_the_event_loop() -> None:
    threads: list[int] = []
    await compressed_by(Working(work=lambda: threads.append(threading.get_ident())))
    assert len(threads) == 1
    assert threads != [threading.get_ident()]


async def test_a_compressor_that_is_left_alone_stops() -> None:
    stopped, begun = threading.Event(), threading.Event()

    def long() -> None:
        begun.set()
        try:
            for _ in range(9_000):
                checkpoint()
                time.sleep(0.01)
        finally:
            stopped.set()

    async with anyio.create_task_group() as group:
        group.start_soon(compressed_by, Working(work=long))
        assert await anyio.to_thread.run_sync(begun.wait, 90)
        group.cancel_scope.cancel()
    assert await anyio.to_thread.run_sync(stopped.wait, 60)


async def test_what_would_compute_for_too_long_is_refused_and_planned_without_it() -> None:
    ran: list[float] = []
    costly = Working(work=lambda: ran.append(61.0), needs=61.0)
    with pytest.raises(InvalidQuery) as caught:
        await compressed_by(costly)
    assert caught.value.field == "compressor"
    (call,) = CompressedRag(compressor=costly, seconds=60.0).calls(task(NOTE), GUESS)
    assert not ran
    # it may turn out as long as the passage
    assert len(call.worst_cases) == 2
    list(CompressedRag(compressor=costly, seconds=62.0).calls(task(NOTE), GUESS))
    assert ran


async def test_long_compressions_run_one_by_one_and_short_ones_beside_them() -> None:
    together, most = 0, 0
    lock = threading.Lock()
    short = threading.Event()

    def long() -> None:
        nonlocal together, most
        with lock:
            together += 1
            most = max(most, together)
        # a long one lasts until the short one was let in
        assert short.wait(90)
        with lock:
            together -= 1

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(compressed_by, Working(work=long, needs=30.0))
        group.start_soon(compressed_by, Working(work=short.set))
    assert most == 1


async def test_a_long_compression_takes_a_turn_and_a_short_one_does_not() -> None:
    def occupied() -> AbstractContextManager[None]:
        raise Occupied

    def asks(needs: float) -> Awaitable[Answer | Refusal]:
        return compressed_by(Working(work=list, needs=needs))

    with taking(occupied):
        assert isinstance(await asks(0.1), Refusal)
        with pytest.raises(Occupied):
            await asks(30.0)
    assert isinstance(await asks(30.0), Refusal), "outside of a worker there are no turns"


async def test_who_cancels_does_not_wait_for_a_compressor() -> None:
    over = threading.Event()
    started = time.monotonic()
    with anyio.move_on_after(0.05) as scope:
        await compressed_by(Working(work=lambda: over.wait(100)))
    took = time.monotonic() - started
    over.set()
    assert scope.cancelled_caught
    assert took < 50


@pytest.mark.parametrize("keep", [-0.01, 1.5, float("nan")])
def test_a_share_is_between_nothing_and_all(keep: float) -> None:
    with pytest.raises(ValueError, match="0 to 1"):
        CompressedRag(keep=keep)
