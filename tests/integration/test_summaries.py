"""The length-checking loop over a scripted model: too long, too short, right; never right; refused; out of money."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import anyio
import pytest

from orchestrator.question.estimates.tokens import Counting
from orchestrator.training.paid.calls import Purchase
from orchestrator.training.paid.rows import RowFile
from orchestrator.training.summaries.price import estimate
from orchestrator.training.summaries.rows import Begin, open_run
from orchestrator.training.summaries.run import Shortening, pairs_of, recalled
from orchestrator.training.summaries.sample import Wish, draw, lot, of_files, of_index
from orchestrator.training.summaries.shortener import Ending, Shortened, Shortener
from posology.budget.ledger.memory import MemoryLedger
from posology.errors import BadFile, BudgetExhausted, InputError, RequestRejected
from posology.index.build.ingest import ingest
from posology.index.build.rows import RowSource
from posology.index.store import Index
from posology.llm.calls import Caller
from posology.llm.retry import RetryPolicy
from posology.llm.stack import build
from posology.seams import Complete, Journal
from posology.testing import HashEmbedder, ScriptedModel
from posology.testing.prices import FlatPrices, by_bytes
from posology.text.tokens import approximate
from posology.types import Call, Completion, Finish, Passage, Role, Stage, Usage

pytestmark = pytest.mark.anyio
FIRST = "Aspirin lowered the risk of stroke."
TEXT = (
    f"{FIRST} " + "It was given to adults who had no disease before and who took nothing else. " * 4
)
PRICES = FlatPrices(token=Decimal("0.00001"))
#: by one reply, at these prices
PAID = Decimal("0.0022")
SHORTENER = Shortener(model="openai:x", share=0.3, rounds=3)
LONG, SHORT = f"{FIRST} " + "More was said. " * 10, FIRST
RIGHT = f"{FIRST} Adults who had no disease before were given it, and took nothing else."
Script = Callable[[Call], str | Completion | BaseException]


def passages(count: int) -> list[Passage]:
    return [Passage(id=f"t:{n}", text=TEXT) for n in range(count)]


def begin() -> Begin:
    return Begin(
        started="2026-01-15T00:00:00+00:00", model="openai:x", share=0.3, tolerance=0.1, rounds=3,
        seed=0, prompts={},
    )  # fmt: skip


class Bench:
    """A model, and money to ask it."""

    def __init__(self, script: Script | list[str]) -> None:
        self.model = ScriptedModel(script, usage=Usage(input=200, output=20))
        self.ledger = MemoryLedger()

    def completes(self, _model: str, journal: Journal, *_: Caller) -> Complete:
        return build(
            self.model,
            journal=journal,
            prices=PRICES,
            bound=by_bytes,
            retry=RetryPolicy(attempts=1),
        )

    async def make(
        self, found: list[Passage], path: Path, *, cap: Decimal | None = None, at_once: int = 1
    ) -> list[Shortened | None]:
        with open_run(path) as run:
            purchase = Purchase(
                completes=self.completes, ledger=self.ledger, cap=cap, at_once=at_once
            )
            await Shortening(run, found, SHORTENER, begin()).buy(purchase)
            return [await recalled(SHORTENER, one, run) for one in found]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "d.run.jsonl"


def test_the_replies_of_these_tests_are_what_they_are_called() -> None:
    length = SHORTENER.length(passages(1)[0])
    assert (
        len(SHORT.split()) < length.least <= len(RIGHT.split()) <= length.most < len(LONG.split())
    )


async def test_it_asks_until_the_length_is_right(path: Path) -> None:
    bench = Bench([LONG, SHORT, RIGHT])
    (found,) = await bench.make(passages(1), path)
    assert found is not None
    assert (found.ending, found.rounds, found.summary) == (Ending.FITS, 3, RIGHT)
    first, second, third = bench.model.calls
    assert {call.stage for call in bench.model.calls} == {Stage.COMPRESS}
    assert second.messages[:2] == first.messages
    assert third.messages[:4] == second.messages
    assert "too long" in second.messages[-1].content
    assert "too short" in third.messages[-1].content
    assert [m.role for m in third.messages[2:]] == [Role.ASSISTANT, Role.USER] * 2
    assert third.messages[4].content == SHORT
    assert {call.prompt.name for call in bench.model.calls} == {"shorten", "shorten_again"}


@pytest.mark.parametrize(
    ("replies", "ending", "rounds"),
    [
        ([LONG, LONG, SHORT], Ending.NEVER_FIT, 3),
        (["I'm sorry, but I cannot answer from the passage."], Ending.DECLINED, 1),
        (["", "", RIGHT], Ending.FITS, 3),
        ([RIGHT.replace("it, and", "90 mg, and"), RIGHT], Ending.FITS, 2),
    ],
)
async def test_what_does_not_fit_is_asked_for_again_or_told(
    path: Path, replies: list[str], ending: Ending, rounds: int
) -> None:
    (found,) = await Bench(replies).make(passages(1), path)
    assert found is not None
    assert (found.ending, found.rounds) == (ending, rounds)


async def test_a_made_up_dose_is_named_to_the_model(path: Path) -> None:
    bench = Bench([RIGHT.replace("it, and", "90 mg, and"), RIGHT])
    await bench.make(passages(1), path)
    assert "90 mg" in bench.model.calls[1].messages[-1].content.split("does not have")[1]


@pytest.mark.parametrize(
    ("finish", "ending"),
    # a safety system that speaks ends it, and a reply that was cut is too long
    [(Finish.FILTERED, Ending.DECLINED), (Finish.LENGTH, Ending.NEVER_FIT)],
)
async def test_a_reply_that_did_not_come_to_its_end(
    path: Path, finish: Finish, ending: Ending
) -> None:
    reply = Completion(text=RIGHT, usage=Usage(input=1, output=1), finish=finish, served_model="x")
    (found,) = await Bench(lambda _: reply).make(passages(1), path)
    assert found is not None
    assert found.ending is ending


async def test_what_one_call_is_refused_for_stops_no_other(path: Path) -> None:
    rejected = RequestRejected("too odd", provider="openai", model="x")

    def script(call: Call) -> str | BaseException:
        return rejected if "odd" in call.messages[1].content else RIGHT

    odd = Passage(id="odd", text=TEXT.replace("adults", "odd adults", 1))
    found = await Bench(script).make([odd, *passages(1)], path)
    assert found[0] is None
    assert found[1] is not None
    with open_run(path) as run:
        assert [one.error for one in run.content.failures.values()] == ["RequestRejected"]
    # it is asked again where the run goes on, and what is there is not
    bench = Bench([RIGHT.replace("Adults", "Odd adults")])
    assert None not in await bench.make([odd, *passages(1)], path)
    assert len(bench.model.calls) == 1
    with open_run(path) as run:
        assert not run.content.failures


async def test_a_budget_that_ends_in_the_middle_is_gone_on_with(path: Path) -> None:
    many = [Passage(id=f"t:{n}", text=TEXT.replace("Aspirin", f"Drug{n}x")) for n in range(4)]

    def script(call: Call) -> str:
        drug = call.messages[1].content.split("text: ")[1].split()[0]
        reply = LONG if len(call.messages) == 2 else RIGHT
        return reply.replace("Aspirin", drug)

    bench = Bench(script)
    first = SHORTENER.first(many[0])
    longest = SHORTENER.again(many[0], first, LONG)
    # the dearest call fits besides two that are paid for, and not besides many
    cap = 2 * PAID + PRICES.worst(
        "x", input_tokens=by_bytes(longest), output_tokens=longest.max_tokens
    )
    with pytest.raises(BudgetExhausted):
        await bench.make(many, path, cap=cap)
    paid = len(bench.model.calls)
    assert 0 < paid < 8
    with open_run(path) as run:
        assert len(run.content.replies) == paid
        assert 0 < run.content.spent <= cap
        spent = run.content.spent
    found = await bench.make(many, path, at_once=3)
    assert all(one is not None and one.ending is Ending.FITS for one in found)
    assert len(bench.model.calls) == 8, "no conversation is begun again"
    with open_run(path) as run:
        assert run.content.spent == spent / paid * 8


def test_a_broken_row_is_cut_away_and_a_stranger_is_left_alone(path: Path) -> None:
    anyio.run(Bench([RIGHT]).make, passages(1), path)
    content = path.read_bytes()
    path.write_bytes(content + b'{"row":"reply","call":"x')
    with open_run(path) as run:
        assert len(run.content.replies) == 1
    assert path.read_bytes() == content
    path.write_bytes(b"my notes")
    with pytest.raises(BadFile), open_run(path):
        pass
    assert path.read_bytes() == b"my notes"


def test_an_estimate_bounds_what_it_can_cost(path: Path) -> None:
    counting = Counting(approximate)
    costs = estimate(
        passages(5), SHORTENER, prices=PRICES, bound=by_bytes, counting=counting, tier="standard"
    )
    assert costs.calls == 5
    assert 0 < costs.dollars.low < costs.dollars.expected < costs.dollars.worst
    once = Shortener(model="openai:x", share=0.3, rounds=1)
    alone = estimate(
        passages(5), once, prices=PRICES, bound=by_bytes, counting=counting, tier="standard"
    )
    assert alone.dollars.expected == alone.dollars.low
    assert alone.dollars.worst < costs.dollars.worst / 3


def test_what_is_drawn_hangs_on_the_seed_alone() -> None:
    some = [Passage(id=f"t:{n}", text="word " * (10 * n)) for n in range(1, 41)]
    wish = Wish(count=5, seed=3, least=100, most=300)
    drawn = draw(some, wish)
    assert drawn == draw(reversed(some), wish)
    assert len(drawn.passages) == 5
    assert (drawn.seen, drawn.unfit) == (40, 19)
    more = draw(some, Wish(count=8, seed=3, least=100, most=300))
    assert more.passages[:5] == drawn.passages
    assert draw(some, Wish(count=5, seed=4, least=100, most=300)).passages != drawn.passages
    with pytest.raises(InputError, match="40 passages"):
        draw(some, Wish(count=5, seed=3, least=900, most=1_000))


def test_an_index_gives_the_same_passages_as_its_corpus(tmp_path: Path) -> None:
    corpus = tmp_path / "c.jsonl"
    corpus.write_text(
        "".join(f'{{"id": "t:{n}", "text": "{"Aspirin helps. " * n}"}}\n' for n in range(1, 30))
    )
    embedder = HashEmbedder()
    index = Index.create(tmp_path / "index", embedder.name, embedder.dim)
    ingest([corpus], index, RowSource(embedder=embedder))
    wish = Wish(count=6, seed=1, least=10, most=40)
    drawn = draw(of_files([corpus]), wish)
    again = draw(of_index(Index.open(tmp_path / "index"), wish), wish)
    assert [one.id for one in again.passages] == [one.id for one in drawn.passages]


def test_parts_are_drawn_by_other_lots_than_passages() -> None:
    found = [
        Shortened(passage=one, ending=Ending.FITS, rounds=1, summary=RIGHT) for one in passages(50)
    ]
    pairs = pairs_of(found, SHORTENER, seed=0)
    assert [pair.split for pair in pairs].count("train") == 40
    assert pairs == pairs_of(found[::-1], SHORTENER, seed=0)
    last = sorted(found, key=lambda one: lot(0, one.passage.id))[-10:]
    held = {pair.id for pair in pairs if pair.split != "train"}
    assert held != {one.passage.id for one in last}


def test_a_run_of_nothing_leaves_nothing(path: Path) -> None:
    with open_run(path) as run:
        assert isinstance(run, RowFile)
        with pytest.raises(BadFile, match="another process"), open_run(path):
            pass
    assert not path.exists()
