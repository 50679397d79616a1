"""Estimates of compressed RAG: what a rewriter or a local model writes is bounded before it is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.compressors import Compressors
from orchestrator.question.estimates.costs import Estimator
from orchestrator.question.estimates.savings import Machine
from orchestrator.question.estimates.tokens import Counting
from orchestrator.question.estimates.typical import Figures, Label, Typical
from posology.budget.bounds.calls import CallBound
from posology.budget.prices.book import packaged
from posology.errors import UnusableReply
from posology.llm.second import REPAIRED
from posology.llm.stack import build
from posology.query import make_query
from posology.seams import Compressor, Rewriter
from posology.testing import ScriptedModel
from posology.testing.prices import FlatPrices, by_bytes
from posology.types import (
    QUOTE_FORMS,
    Call,
    Compressed,
    Compression,
    Dose,
    Passage,
    Retrieval,
    Stage,
    Task,
    Usage,
)
from strategies import make
from tests.support.examples import examples
from tests.support.holding import Holding, used
from tests.support.rewriters import Short, Summing
from tests.support.tasks import retrieval_of

pytestmark = pytest.mark.anyio

MODELS = ("openai:gpt-4o-mini", "anthropic:claude-sonnet-4-5")
#: whatever needs nothing, and what does not exist beforehand
NAMED = ("leancontext", "leancontext_top", "query_summary", "semantic_rewrite", "top+query_summary")
WORDS = st.sampled_from(["aspirin", "STROKE", "p<0.001", "75 mg", "β-blockers", "心不全", "risk."])
texts = st.lists(WORDS, min_size=1, max_size=60).map(" ".join)
passages = st.lists(texts, max_size=7).map(
    lambda found: [Passage(id=f"t:{i}", text=text, title="Aspirin") for i, text in enumerate(found)]
)
quick = settings(examples(15), suppress_health_check=list(HealthCheck))
MILLI = Decimal("0.001")


def task(found: Sequence[Passage], model: str = MODELS[0], max_tokens: int | None = None) -> Task:
    query = make_query("Does aspirin lower the risk of stroke?")
    return Task(
        query=query, retrieval=retrieval_of(query, found), model=model, max_tokens=max_tokens
    )


def estimator(compressor: Compressor | Rewriter | None = None, **other: object) -> Estimator:
    given = {
        "prices": packaged(),
        "bound": CallBound(),
        "counting": Counting(lambda text: len(text.split())),
        "typical": Typical(),
    }
    choose = Compressors("leancontext") if compressor is None else lambda _: compressor
    return Estimator(**(given | other), choose=choose)  # type: ignore[arg-type]


def replies(text: str) -> Callable[[Call], str]:
    """Writes of each passage what it is told to, as long as there is room, after a reply that is none."""

    def reply(call: Call) -> str:
        assert call.schema is not None
        if len(call.messages) <= 2 and "broken" not in call.messages[-1].content:
            return '{"broken": "' + "a word of it " * (call.max_tokens * 4 // 13)
        if call.stage is not Stage.COMPRESS:
            said = [{"text": "No.", "sentences": []}]
            return json.dumps({"answerable": False, "statements": said, "choice": None})
        count = len(call.excerpts)
        each = (text * (1 + 4 * call.max_tokens // max(1, len(text))))[
            : 4 * call.max_tokens // count
        ]
        if "summaries" not in call.schema.model_fields:
            named = [{"passage": f"P{i + 1}", "text": each} for i in range(count)]
            return json.dumps({next(iter(call.schema.model_fields)): named})
        if call.schema.__name__ == "Summaries":
            return json.dumps({"summaries": [each] * count})
        written = [{"passage": f"P{i + 1}", "summary": each} for i in range(count)]
        return json.dumps({"summaries": written})

    return reply


async def held(
    compressor: Compressor | Rewriter, dose: Dose, asked: Task, text: str, share: float = 0.05
) -> tuple[Decimal, int]:
    """The most that a run holds when every reply needs a repair, and how many calls it made."""
    bound, reply = CallBound(), replies(text)
    account = Holding()
    adapter = ScriptedModel(lambda call: used(call, reply(call), bound=bound, share=share))
    complete = build(adapter, journal=account, prices=packaged(), bound=bound)
    with suppress(UnusableReply):
        await make(dose, choose=lambda _: compressor)(asked, complete)
    return account.most, len({attempt.call for attempt in account.attempts})


@pytest.mark.parametrize("rungs", [(), (2, 7)])
@pytest.mark.parametrize("name", NAMED)
@quick
@given(
    found=passages,
    model=st.sampled_from(MODELS),
    text=st.sampled_from(["STROKE ", "75 mg aspirin. ", "心"]),
    keep=st.sampled_from([None, 0.0, 0.3, 1.0]),
    share=st.sampled_from([0.05, 0.7, 1.0]),
)
async def test_no_more_than_the_worst_is_charged_and_reserved(
    name: str,
    rungs: tuple[int, ...],
    found: list[Passage],
    model: str,
    text: str,
    keep: float | None,
    share: float,
) -> None:
    dose = Dose(strategy="compressed", compressor=name, keep=keep, rungs=rungs)
    asked = task(found, model)
    made = await estimator()(asked, dose)
    assert made.dollars.low <= made.dollars.expected <= made.dollars.worst
    spent, _ = await held(Compressors("leancontext")(name), dose, asked, text, share)
    assert spent <= made.dollars.worst


@pytest.mark.parametrize(
    "compressor",
    [Short(), Short(whole=1), Short(max_tokens=2_000), Summing(), Summing(text="心" * 300)],
)
@quick
@given(
    found=passages,
    text=st.sampled_from(["STROKE ", "7", "心", "a "]),
    model=st.sampled_from(MODELS),
)
async def test_whatever_is_written_is_within_the_worst(
    compressor: Compressor | Rewriter, found: list[Passage], text: str, model: str
) -> None:
    dose = Dose(strategy="compressed")
    asked = task(found, model)
    made = await estimator(compressor)(asked, dose)
    spent, calls = await held(compressor, dose, asked, text)
    assert spent <= made.dollars.worst
    # each with its repair, and none for an answer where nothing is left
    assert calls in (2 * made.calls, 2 * (made.calls - 1))


async def test_a_rewriter_s_call_is_planned_and_nothing_is_run_for_it() -> None:
    ran: list[Retrieval] = []

    class Local(Summing):
        def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:
            ran.append(retrieval)
            return super().__call__(retrieval, keep)

    found = [Passage(id=f"t:{i}", text="Aspirin lowered the risk. " * 20) for i in range(4)]
    local = await estimator(Local())(task(found), Dose(strategy="compressed"))
    short = await estimator(Short())(task(found), Dose(strategy="compressed"))
    assert (local.calls, short.calls) == (1, 2)
    assert ran == []
    # of a ladder each rung has its own
    ladder = await estimator(Short())(task(found), Dose(strategy="compressed", rungs=(2, 4)))
    assert ladder.calls == 4


async def test_the_price_of_a_ladder_to_begin_is_of_all_calls_of_its_first_rung() -> None:
    found = [Passage(id=f"t:{i}", text="Aspirin lowered the risk. " * 20) for i in range(4)]
    one = estimator(Short())
    ladder = Dose(strategy="compressed", rungs=(2, 4))
    first = Dose(strategy="compressed", passages=2)
    for quotes in QUOTE_FORMS:
        asked = replace(task(found), quotes=quotes)
        alone, begun = one.quote(asked, first), one.quote(asked, ladder)
        # the form of its replies lists the labels of all rungs' passages; a pattern of names is as long for them
        longer = Decimal("1.02") if quotes == "copied" else Decimal(1)
        assert alone <= begun <= alone * longer
        assert (begun > alone) == (quotes == "copied")
        assert alone * REPAIRED == (await one(asked, first)).dollars.worst


WEIGHED = [Passage(id=f"t:{i}", text="Aspirin lowered the risk. " * 20) for i in range(4)]


def flat(
    compressor: Compressor | Rewriter, hour: str | None = "3600", **other: object
) -> Estimator:
    machine = None if hour is None else Machine(dollars_per_hour=Decimal(hour))
    given = {"prices": FlatPrices(token=MILLI), "bound": by_bytes, "machine": machine}
    return estimator(compressor, **(given | other))


def test_a_local_compressor_costs_its_machine_s_time() -> None:
    found = flat(Summing(takes=1.5)).weighing.expected(task(WEIGHED), Dose(strategy="compressed"))
    assert found is not None
    # four passages, at a dollar a second, of a machine that idles half of the time
    assert (found.seconds, found.cost) == (6.0, Decimal(12))
    assert found.left == 0.5
    assert found.tokens == round(4 * 80 * 0.96)
    assert found.whole == found.tokens * MILLI


def test_a_rewriter_costs_its_calls() -> None:
    one = flat(Short(share=0.25))
    found = one.weighing.expected(task(WEIGHED), Dose(strategy="compressed"))
    assert found is not None
    assert found.seconds is None
    # it reads at least what it is to shorten
    assert found.cost > found.whole
    label = Label(stage="compress", strategy="compressed", model=MODELS[0])
    terse = Typical({label: Figures(attempts=10**6, input=0, output=10**6)})
    less = flat(Short(share=0.25), typical=terse).weighing.expected(
        task(WEIGHED), Dose(strategy="compressed")
    )
    assert less is not None
    assert less.cost < found.cost


def test_a_ladder_is_weighed_by_how_far_it_is_climbed() -> None:
    one = flat(Summing())
    plain = one.weighing.expected(task(WEIGHED), Dose(strategy="compressed"))
    ladder = one.weighing.expected(task(WEIGHED), Dose(strategy="compressed", rungs=(2, 4)))
    assert plain is not None
    assert ladder is not None
    assert ladder.seconds == pytest.approx(2 + 4 * 0.3)
    assert ladder.whole == pytest.approx(plain.whole * Decimal("0.8"), rel=Decimal("0.01"))


@pytest.mark.parametrize("token", [None, Decimal(0)])
def test_without_a_price_there_is_nothing_to_weigh(token: Decimal | None) -> None:
    one = flat(Summing(), prices=FlatPrices(token=token))
    assert one.weighing.expected(task(WEIGHED), Dose(strategy="compressed")) is None


def test_what_it_did_save_is_told_as_far_as_it_is_known() -> None:
    took = Compression(
        compressor="short",
        extractive=False,
        kept=0,
        sentences=80,
        shown=32,
        words=320,
        seconds=2.0,
        usage=Usage(input=100, output=20),
    )
    asked = task(WEIGHED)
    weigh = flat(Short()).weighing.actual
    found = weigh(asked.retrieval, took, asked.model)
    assert (found.tokens, found.shown) == (round(320 * 0.96), round(32 * 0.96))
    assert found.saved == (found.tokens - found.shown) * MILLI
    assert (found.calls, found.machine) == (120 * MILLI, Decimal(0))
    local = weigh(asked.retrieval, replace(took, usage=Usage()), asked.model)
    assert (local.calls, local.machine) == (Decimal(0), Decimal(4))
    unknown = weigh(asked.retrieval, replace(took, usage=None), asked.model)
    assert unknown.calls is None
    # what is shown more than once is read more than once
    twice = weigh(asked.retrieval, replace(took, words=640), asked.model)
    assert twice.tokens == 2 * found.tokens
