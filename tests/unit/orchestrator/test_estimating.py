"""Estimates: what is low is no more than what is expected, and nothing is reserved beyond the worst."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.question.estimates.accuracy import Compared, accuracy
from orchestrator.question.estimates.costs import Dollars, Estimate, Estimator
from orchestrator.question.estimates.tokens import Counting, packaged_counter
from orchestrator.question.estimates.typical import (
    OFFLINE_REFUSED,
    OFFLINE_REFUSED_AGAIN,
    REFUSED,
    REFUSED_AGAIN,
    WEIGHT,
    Figures,
    Label,
    Typical,
)
from policies.affordable import further
from posology.budget.bounds.calls import CallBound
from posology.budget.prices.book import packaged
from posology.errors import NothingRead, UnpricedModel, UnusableReply
from posology.llm.accounting import Account
from posology.llm.second import REPAIRED
from posology.llm.stack import build
from posology.query import make_query
from posology.seams import Complete
from posology.testing import ScriptedModel
from posology.testing.prices import FlatPrices, by_bytes
from posology.types import (
    QUOTE_FORMS,
    Call,
    Dose,
    PartitionMode,
    Passage,
    QuoteForm,
    Refusal,
    Stage,
    Task,
    Usage,
)
from prompts.lengths import filler
from strategies import STRATEGIES
from strategies import make as make_strategy
from strategies.evidence import truncate_task
from tests.support.guess import GUESS
from tests.support.holding import Holding, used
from tests.support.tasks import retrieval_of

pytestmark = pytest.mark.anyio

MODELS = ("openai:gpt-4o-mini", "openai:gpt-5-mini", "anthropic:claude-sonnet-4-5")
SENTENCE = "Aspirin lowered the risk of stroke in adults."
WORDS = st.sampled_from(
    ["aspirin", "STROKE", "p<0.001", "75 mg", "β-blockers", "心不全", "risk of"]
)
texts = st.lists(WORDS, min_size=1, max_size=60).map(lambda found: f"{SENTENCE} {' '.join(found)}.")
passages = st.lists(st.tuples(texts, st.lists(WORDS, max_size=60)), max_size=9).map(
    lambda found: [
        Passage(id=f"t:{i}", text=text, title=" ".join(title), year=2001)
        for i, (text, title) in enumerate(found)
    ]
)
quick = settings(suppress_health_check=list(HealthCheck))


def task(
    found: Sequence[Passage],
    *,
    model: str,
    max_tokens: int | None = None,
    quotes: QuoteForm = "sentences",
    partitions: PartitionMode = "extract",
) -> Task:
    query = make_query("Does aspirin lower the risk of stroke?", form="yes_no_maybe")
    return Task(
        query=query,
        retrieval=retrieval_of(query, found),
        model=model,
        max_tokens=max_tokens,
        quotes=quotes,
        partitions=partitions,
    )


def estimator(typical: Typical | None = None) -> Estimator:
    return Estimator(
        prices=packaged(),
        bound=CallBound(),
        counting=Counting(packaged_counter()),
        typical=typical or Typical(),
    )


def flat(**price: Decimal | None) -> Estimator:
    """Of characters that all cost the same."""
    prices = FlatPrices(**price)  # type: ignore[arg-type]
    counting = Counting(len)  # type: ignore[arg-type]  # of any name
    return Estimator(prices=prices, bound=by_bytes, counting=counting, typical=Typical())


ESTIMATOR = estimator()
#: of up to 9 passages, all but the last three by one call or one a partition
DOSES = (
    *(Dose(strategy=name) for name in STRATEGIES),
    Dose(strategy="compressed", keep=0.4, rungs=(2, 4, 9), escalate=True),
    Dose(strategy="direct", rungs=(2, 4, 9), escalate=True),
    Dose(strategy="direct", rungs=(2, 4), escalate=True, search=True),
)


@pytest.mark.parametrize("dose", DOSES)
@quick
@given(
    found=passages,
    model=st.sampled_from([*MODELS, "offline:extractive"]),
    max_tokens=st.sampled_from([None, 64, 4_000]),
    output=st.integers(0, 5_000),
)
async def test_low_is_at_most_expected_and_expected_at_most_worst(
    dose: Dose, found: list[Passage], model: str, max_tokens: int | None, output: int
) -> None:
    label = Label(stage="extract", strategy="briefcontext", model=model)
    said = Figures(attempts=10**6, input=10**9, output=output * 10**6)
    history = {
        label: said,
        Label(stage="reduce", strategy="briefcontext", model=model): said,
        Label(stage="answer", strategy="direct", model=model): said,
    }
    asked = task(found, model=model, max_tokens=max_tokens)
    for one in (ESTIMATOR, estimator(Typical(history))):
        made = await one(asked, dose)
        dollars = made.dollars
        assert Decimal(0) <= dollars.low <= dollars.expected <= dollars.worst
        assert (dollars.worst > 0) == (bool(found) and model != "offline:extractive")
        assert bool(made.calls) == bool(found)


def _extract(found: int, *, long: bool, call: Call) -> str:
    """As many findings as the reply has room for, and an answer if one is asked for."""
    reply = json.loads(_findings(found, long=long, call=call))
    assert call.schema is not None
    if "answer" in call.schema.model_fields:
        reply |= {"answer": "STROKE 75 " * 20, "choice": None}
    return json.dumps(reply, separators=(",", ":"))


def _findings(found: int, *, long: bool, call: Call) -> str:
    """As many findings as the reply has room for, or one statement as long as it, of all passages."""
    labels = [f"P{i + 1}" for i in range(len(call.excerpts))]
    if call.quotes == "sentences":
        return _numbered(found, long=long, call=call)
    if long:
        quotes = [{"passage": one, "quote": SENTENCE} for one in labels]
        # capitals are counted by their bytes
        statement = "STROKE 75 " * (call.max_tokens * 4 // 10)
        findings = [{"statement": statement, "quotes": quotes}]
    else:
        one = {"statement": "", "quotes": [{"passage": labels[-1], "quote": "the risk of"}]}
        findings = [one] * min(found, call.max_tokens // 18)
    return json.dumps({"found": True, "findings": findings}, separators=(",", ":"))


def _numbered(found: int, *, long: bool, call: Call) -> str:
    """The same by numbers: as many as a finding may name, of as many passages."""
    names = [f"{i + 1}.1" for i in range(len(call.excerpts))]
    if long:
        findings = [{"statement": "STROKE " * (call.max_tokens * 4 // 7), "sentences": names}]
    else:
        one = {"statement": "", "sentences": names * 3}
        findings = [one] * min(found, call.max_tokens // 10)
    return json.dumps({"found": True, "findings": findings}, separators=(",", ":"))


def _replies(found: int, *, long: bool) -> Callable[[Call], str]:
    """Gives what is asked for."""

    def reply(call: Call) -> str:
        if call.stage is Stage.EXTRACT:
            return _extract(found, long=long, call=call)
        rest: dict[str, object] = (
            {"evidence": [], "claims": []} if call.stage is Stage.REDUCE else {"quotes": []}
        )
        assert call.schema is not None
        if "short" in call.schema.model_fields:
            rest = {"evidence": [], "short": ""}
        if call.quotes == "sentences":
            rest.pop("evidence", None), rest.pop("quotes", None)
            said = [{"text": "No.", "sentences": []}]
            return json.dumps({"answerable": False, "statements": said, "choice": None, **rest})
        return json.dumps({"answerable": False, "answer": "No.", "choice": None, **rest})

    return reply


def _repaired(found: int, *, long: bool) -> Callable[[Call], str]:
    """Gives first what cannot be used, as long as it may be, and when asked again what is asked for."""
    good = _replies(found, long=long)

    def reply(call: Call) -> str:
        if len(call.messages) == 2:
            return '{"broken": "' + "a word of it " * (call.max_tokens * 4 // 13)
        return good(call)

    return reply


BOUND = CallBound()
#: shares of a call's bounds that are used; with the least, a second call is always paid for
SHARES = st.sampled_from([0.05, 0.4, 0.7, 1.0])


def _using(reply: Callable[[Call], str], share: float) -> ScriptedModel:
    return ScriptedModel(lambda call: used(call, reply(call), bound=BOUND, share=share))


async def give(dose: Dose, asked: Task, size: int, complete: Complete) -> None:
    """Give a dose; after a ladder that was refused to the last, what follows."""
    outcome = await make_strategy(dose, partition_size=size)(asked, complete)
    if dose.search and len(asked.retrieval.passages) > dose.planned:
        then = further(dose, dose.planned)
        await make_strategy(then)(truncate_task(asked, then), complete)
    elif dose.escalate and isinstance(outcome, Refusal) and asked.retrieval.passages:
        await make_strategy(Dose(strategy="briefcontext"), partition_size=size)(asked, complete)


@pytest.mark.parametrize("dose", DOSES)
@quick
@given(
    found=passages,
    model=st.sampled_from(MODELS),
    max_tokens=st.sampled_from([None, 64, 700]),
    findings=st.sampled_from([1, 10, 10_000]),
    long=st.booleans(),
    size=st.sampled_from([1, 3, 9]),
    share=SHARES,
    quotes=st.sampled_from(QUOTE_FORMS),
    partitions=st.sampled_from(get_args(PartitionMode)),
)
async def test_no_more_than_the_worst_is_charged_and_reserved(
    dose: Dose,
    found: list[Passage],
    model: str,
    max_tokens: int | None,
    findings: int,
    long: bool,
    size: int,
    share: float,
    quotes: QuoteForm,
    partitions: PartitionMode,
) -> None:
    asked = task(found, model=model, max_tokens=max_tokens, quotes=quotes, partitions=partitions)
    made = await ESTIMATOR(asked, dose, partition_size=size)
    account, adapter = Holding(), _using(_repaired(findings, long=long), share)
    complete = build(adapter, journal=account, prices=packaged(), bound=BOUND)
    try:
        await give(dose, asked, size, complete)
    except (UnusableReply, NothingRead):
        assert share > 0.05
    else:
        assert share == 1.0 or len(adapter.calls) == 2 * made.calls
    assert account.most <= made.dollars.worst


@pytest.mark.parametrize("partitions", get_args(PartitionMode))
@pytest.mark.parametrize("quotes", QUOTE_FORMS)
@pytest.mark.parametrize(("title", "size", "long"), [("STROKE " * 60, 1, False), ("", 9, True)])
async def test_what_findings_can_become_is_reserved_for(
    title: str, size: int, long: bool, quotes: QuoteForm, partitions: PartitionMode
) -> None:
    found = [Passage(id=f"t:{i}", text=SENTENCE, title=title) for i in range(9)]
    asked = task(found, model=MODELS[0], max_tokens=700, quotes=quotes, partitions=partitions)
    strategy = make_strategy(Dose(strategy="briefcontext"), partition_size=size)
    made = await ESTIMATOR(asked, Dose(strategy="briefcontext"), partition_size=size)
    account, adapter = Holding(), _using(_replies(10_000, long=long), 1.0)
    await strategy(asked, build(adapter, journal=account, prices=packaged(), bound=BOUND))
    assert adapter.calls[-1].stage is Stage.REDUCE
    assert made.dollars.worst / 4 < account.most <= made.dollars.worst


async def test_the_calls_that_are_counted_are_those_that_are_made() -> None:
    found = [Passage(id=f"t:{i}", text=f"{SENTENCE} It was group {i}.") for i in range(8)]
    asked = task(found, model=MODELS[0])
    for name in STRATEGIES:
        strategy = make_strategy(Dose(strategy=name))
        planned = list(strategy.calls(asked, GUESS))
        assert strategy.count(asked) == len(planned)
        adapter = ScriptedModel(_replies(1, long=False))
        complete = build(adapter, journal=Account(), prices=packaged(), bound=CallBound())
        await strategy(asked, complete)
        certain = [one.call for one in planned if one.share == 1]
        assert [call.messages for call in certain] == [
            call.messages for call in adapter.calls if call.stage is not Stage.REDUCE
        ]
        assert [one.call.stage for one in planned] == [call.stage for call in adapter.calls]
        assert all(one.call.max_tokens == made.max_tokens
                   for one, made in zip(planned, adapter.calls, strict=True))  # fmt: skip


def nine(model: str = MODELS[0]) -> Task:
    return task([Passage(id=f"t:{i}", text=SENTENCE) for i in range(9)], model=model)


@pytest.mark.parametrize(
    ("model", "refused", "again"),
    [
        (MODELS[0], REFUSED, REFUSED_AGAIN),
        ("offline:extractive", OFFLINE_REFUSED, OFFLINE_REFUSED_AGAIN),
    ],
)
async def test_a_rung_is_expected_as_often_as_all_before_it_are_refused(
    model: str, refused: float, again: float
) -> None:
    one = flat()
    asked, ladder = nine(model), Dose(strategy="direct", rungs=(2, 4, 9))
    alone = [await one(asked, Dose(strategy="direct", passages=n)) for n in ladder.rungs]
    brief = await one(asked, Dose(strategy="briefcontext"))
    made = await one(asked, ladder)
    shares = [Decimal(1), *(Decimal(str(refused * again**rung)) for rung in range(3))]
    told = sum((s * a.dollars.expected for s, a in zip(shares, alone, strict=False)), Decimal(0))
    # a prompt that begins as shorter ones is longer by their ends
    assert float(told) < float(made.dollars.expected) == pytest.approx(float(told), rel=0.03)
    apart = sum((a.dollars.worst for a in alone), Decimal(0))
    assert apart < made.dollars.worst < apart * Decimal("1.05")
    told = made.dollars.expected
    # a ladder may end with its first call
    assert made.dollars.low == alone[0].dollars.low
    assert made.calls == 3
    further = await one(asked, replace(ladder, escalate=True))
    assert float(further.dollars.expected) == pytest.approx(
        float(told + shares[3] * brief.dollars.expected)
    )
    assert further.dollars.worst == made.dollars.worst + brief.dollars.worst
    assert further.dollars.low == made.dollars.low
    assert further.calls == made.calls + brief.calls


async def test_a_dose_can_begin_with_its_reservations_and_a_ladder_with_those_of_its_first_rung() -> (
    None
):
    asked = nine()
    for name in STRATEGIES:
        dose = Dose(strategy=name)
        least = ESTIMATOR.quote(asked, dose)
        assert least * REPAIRED == (await ESTIMATOR(asked, dose)).dollars.worst
    two = Dose(strategy="direct", passages=2)
    # names of sentences have a pattern, which is as long for all rungs' passages as for the first rung's
    assert ESTIMATOR.quote(asked, DOSES[-1]) == ESTIMATOR.quote(asked, two)
    # labels of passages are enumerated, those of all rungs
    copied = replace(asked, quotes="copied")
    first = ESTIMATOR.quote(copied, two)
    assert first < ESTIMATOR.quote(copied, DOSES[-1]) < first * Decimal("1.02")
    prices = [ESTIMATOR.quote(asked, Dose(strategy="direct", passages=n)) for n in range(1, 10)]
    assert prices == sorted(prices)


@pytest.mark.parametrize("model", ["openai:gpt-6-luna", "anthropic:claude-haiku-5-5"])
async def test_a_fifth_of_a_cent_pays_for_an_answer_of_a_small_model(model: str) -> None:
    found = [Passage(id=f"t:{i}", text=" ".join([SENTENCE] * 20)) for i in range(8)]
    assert ESTIMATOR.quote(task(found, model=model), Dose(strategy="direct")) < Decimal("0.002")


async def test_what_nobody_knows_the_price_of_is_refused() -> None:
    with pytest.raises(UnpricedModel):
        await flat(token=None)(nine(), Dose(strategy="direct"))


async def test_the_estimate_is_the_price_of_what_is_counted() -> None:
    asked = task([Passage(id="t:1", text=SENTENCE)], model="offline:extractive", max_tokens=500)
    one = flat()
    made = await one(asked, Dose(strategy="direct"))
    adapter = ScriptedModel(_replies(1, long=False), usage=Usage(input=1, output=1))
    await make_strategy(Dose(strategy="direct"))(asked, build(adapter, journal=Account(), prices=FlatPrices(),
                                              bound=by_bytes))  # fmt: skip
    (call,) = adapter.calls[:1]
    read = sum(len(m.content) for m in call.messages)
    assert (made.input, made.output) == (read, 159)
    assert made.dollars.expected == Decimal("0.01") * (read + 159)
    assert made.dollars.low == Decimal("0.01") * (read + 15)


def test_own_calls_take_the_place_of_guesses_as_they_become_more() -> None:
    label = Label(stage="answer", strategy="direct", model="openai:x")
    before = Typical().output(label)
    some = Typical({label: Figures(attempts=WEIGHT, input=0, output=WEIGHT * 1_000)})
    many = Typical({label: Figures(attempts=10**6, input=0, output=10**9)})
    other = Label(stage="answer", strategy="direct", model="openai:y")
    assert some.output(label) == (before + 1_000) / 2
    assert many.output(label) == pytest.approx(1_000, rel=0.001)
    assert many.output(other) == before


def test_findings_are_what_reduce_calls_took_in_beyond_themselves() -> None:
    extract = Label(stage="extract", strategy="briefcontext", model="openai:x")
    reduce = Label(stage="reduce", strategy="briefcontext", model="openai:x")
    history = {
        extract: Figures(attempts=3 * 10**6, input=0, output=0),
        reduce: Figures(attempts=10**6, input=10**6 * (700 + 3 * 50), output=0),
    }
    found = Typical(history).findings(extract, reduce, bare=700, block=90)
    assert found == pytest.approx(50, rel=0.001)
    short = {**history, reduce: Figures(attempts=10**6, input=10**6, output=0)}
    assert 0 <= Typical(short).findings(extract, reduce, bare=700, block=90) < 0.01


def test_a_filler_is_at_least_as_many_tokens_by_every_bound() -> None:
    from posology.text.bounds import bytes_bound, words_bound

    for bound in (bytes_bound, words_bound):
        assert bound(filler(100)) >= 500


def compared(expected: str, actual: str | None, *, repeated: bool = False) -> Compared:
    dollars = Dollars(low=Decimal(1), expected=Decimal(expected), worst=Decimal(10))
    estimate = Estimate(strategy="direct", calls=1, input=1, output=1, dollars=dollars)
    return Compared(
        estimate=estimate,
        actual=None if actual is None else Decimal(actual),
        repeated=repeated,
    )


def test_how_far_off_is_told_by_question_and_in_all() -> None:
    found = accuracy(
        "direct",
        [compared("2", "1"), compared("2", "2"), compared("4", "11"), compared("2", None),
         compared("2", "12", repeated=True)],
    )  # fmt: skip
    assert (found.questions, found.unknown, found.repeated, found.over_worst) == (4, 1, 1, 1)
    assert (found.estimated_usd, found.actual_usd) == (Decimal(10), Decimal(26))
    assert (found.ratio, found.within) == (2.6, 0.5)
    assert (found.p5, found.p95) == (0.5, 6.0)


def test_nothing_is_said_of_no_answers() -> None:
    found = accuracy("direct", [])
    assert (found.ratio, found.p50, found.within, found.questions) == (None, None, None, 0)
