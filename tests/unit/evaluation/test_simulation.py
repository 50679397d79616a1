from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.simulation import fit, same
from orchestrator.evaluation.simulation import SIMULATED, Gold, SimulatedModel, is_right, profiles
from orchestrator.evaluation.simulation.profiles import FITTED, PUBLISHED, Profile, read
from posology.errors import RequestRejected, UnknownModel
from posology.llm.models.names import parse
from posology.llm.providers.table import PROVIDERS
from posology.query import make_query
from posology.seams import Complete
from posology.types import Answer, Call, Passage, Query, QuoteForm, Refusal, Sentence, Stage
from strategies.briefcontext.strategy import BriefContext
from strategies.direct import Direct
from tests.support.tasks import task_of

KEY = "key"
TEXT = "The trial found that the drug lowers the pressure."
OTHERS = tuple(
    Passage(id=f"other:{i}", text=f"Another trial, number {i}, studied another drug.")
    for i in range(15)
)
FORMS: tuple[QuoteForm, ...] = ("sentences", "copied")
QUESTIONS = 150
NAMES = sorted(profiles())
WEAK = profiles()["weak"].takes_in


def gold(_: Query) -> Gold:
    return {KEY: (Sentence(start=0, end=len(TEXT)),)}


def nothing(_: Query) -> Gold:
    return {}


def model(profile: Profile | str, known: Any = gold, seed: int = 0) -> SimulatedModel:
    found = profiles()[profile] if isinstance(profile, str) else profile
    return SimulatedModel(found, known, lambda text: len(text.split()), seed=seed)


def shown(passages: int, place: int | None) -> tuple[Passage, ...]:
    """So many passages, the key passage among them unless ``place`` is ``None``."""
    others = list(OTHERS[: passages - (place is not None)])
    if place is not None:
        others.insert(place, Passage(id=KEY, text=TEXT))
    return tuple(others)


def ask(
    complete: Complete,
    passages: tuple[Passage, ...],
    questions: int = 1,
    quotes: QuoteForm = "sentences",
    strategy: Direct | BriefContext | None = None,
) -> list[Answer | Refusal]:
    async def run() -> list[Answer | Refusal]:
        tasks = [
            task_of(make_query(f"Question {n}: does it help?"), passages, quotes=quotes)
            for n in range(questions)
        ]
        return [await (strategy or Direct())(task, complete) for task in tasks]

    return anyio.run(run)


def right(outcome: Answer | Refusal) -> bool:
    return is_right(outcome, gold(make_query("Any?")))


def rate(
    complete: Complete, passages: tuple[Passage, ...], strategy: BriefContext | None = None
) -> float:
    outcomes = ask(complete, passages, QUESTIONS, strategy=strategy)
    return sum(map(right, outcomes)) / QUESTIONS


@pytest.mark.parametrize("quotes", FORMS)
@pytest.mark.parametrize("strategy", [Direct(), BriefContext(size=3)])
def test_a_simulated_answer_cites_what_it_was_shown_and_says_that_it_is_simulated(
    strategy: Direct | BriefContext, quotes: QuoteForm
) -> None:
    sure = replace(profiles()["immune"], reads=1.0, resolves=1.0)
    (outcome,) = ask(model(sure), shown(8, 3), quotes=quotes, strategy=strategy)
    assert isinstance(outcome, Answer)
    assert [c.passage_id for c in outcome.citations] == [KEY]
    assert outcome.text.startswith(SIMULATED)
    assert not outcome.dropped_quotes


@pytest.mark.parametrize("name", NAMES)
def test_the_same_question_and_context_get_the_same_reply(name: str) -> None:
    first, again = (ask(model(name), shown(8, 4), 20) for _ in range(2))
    assert first == again


def test_another_seed_draws_anew() -> None:
    one, other = (ask(model("weak", seed=seed), shown(8, 4), 40) for seed in (0, 1))
    assert one != other


@pytest.mark.parametrize("place", [0, 3, 7])
def test_right_answers_follow_the_curve(place: int) -> None:
    profile = replace(profiles()["weak"], reads=1.0)
    expected = profile.takes_in(place, 7 - place)
    assert rate(model(profile), shown(8, place)) == pytest.approx(expected, abs=0.12)


def test_the_middle_of_a_long_context_is_lost_and_its_beginning_is_not() -> None:
    weak = model("weak")
    first, middle, alone = (rate(weak, shown(n, place)) for n, place in ((16, 0), (16, 8), (1, 0)))
    assert middle < first < alone


def test_an_immune_model_loses_nothing() -> None:
    immune = model("immune")
    assert rate(immune, shown(16, 8)) == rate(immune, shown(1, 0))


def test_a_key_passage_that_is_misread_gives_a_wrong_answer_even_alone() -> None:
    careless = replace(profiles()["immune"], reads=0.0)
    (outcome,) = ask(model(careless), shown(1, 0))
    assert isinstance(outcome, Answer)
    assert outcome.citations
    assert not right(outcome)


def test_briefcontext_finds_what_direct_rag_loses() -> None:
    forgetful = replace(profiles()["weak"], misled=0.0, reads=1.0)
    direct = rate(model(forgetful), shown(16, 7))
    partitioned = rate(model(forgetful), shown(16, 7), BriefContext(size=3))
    assert partitioned > direct


def test_without_the_key_passage_no_answer_is_right_and_profiles_differ_in_refusing() -> None:
    refused = {}
    for name in NAMES:
        outcomes = ask(model(name), shown(8, None), 100)
        assert not any(map(right, outcomes))
        refused[name] = sum(isinstance(one, Refusal) for one in outcomes)
    assert refused["over-confident"] < refused["strong"] < refused["over-refusing"]


def test_gold_that_a_compressor_removed_is_not_answered_from() -> None:
    sentences = "The drug lowers the pressure. It was given for a week."
    passages = (Passage(id=KEY, text=sentences), *OTHERS[:3])
    task = task_of(make_query("Does it help?"), passages, quotes="sentences")
    call = next(iter(Direct().calls(task, _Guess()))).call
    first, *rest = call.excerpts
    cut = replace(call, excerpts=(replace(first, sentences=first.sentences[1:]), *rest))

    def answers(_: Query) -> Gold:
        return {KEY: first.sentences[:1]}

    sure = replace(profiles()["immune"], reads=1.0)

    async def evidence(one: Call) -> list[str]:
        reply: Any = (await model(sure, answers)(one)).parsed
        return [name for said in reply.statements for name in said.sentences]

    assert anyio.run(evidence, call) == ["1.1"]
    assert "1.1" not in anyio.run(evidence, cut)


def test_a_part_of_a_passage_lengthens_the_context_by_that_part_or_as_a_whole() -> None:
    task = task_of(make_query("Question 7: does it help?"), shown(16, 8), quotes="sentences")
    call = next(iter(Direct().calls(task, _Guess()))).call
    shortened = replace(
        call,
        excerpts=tuple(
            one if one.passage.id == KEY else replace(one, sentences=()) for one in call.excerpts
        ),
    )
    # takes in a lone passage only
    lone = replace(profiles()["immune"], reads=1.0, takes_in=replace(WEAK, dilution=50.0))

    def count(text: str) -> int:
        return len(text)

    async def answers(*, parts: bool) -> bool:
        reply: Any = await SimulatedModel(lone, gold, count, partial=parts)(shortened)
        return bool(reply.parsed.answerable)

    assert anyio.run(partial(answers, parts=True))
    assert not anyio.run(partial(answers, parts=False))


class _Guess:
    """Plans calls without sizes."""

    def __getattr__(self, _: str) -> Any:
        return lambda *_args, **_kwargs: 0.0


@given(st.sampled_from(NAMES), st.floats(0, 60), st.floats(0, 60))
def test_a_curve_is_a_probability_and_falls_with_what_comes_after(
    name: str, before: float, after: float
) -> None:
    profile = profiles()[name]
    assert 0 <= profile.takes_in(before, after) <= profile.takes_in(0, 0) == 1
    assert profile.takes_in(before, after + 1) <= profile.takes_in(before, after)
    assert 0 < profile.refuses(1 + before + after) <= profile.refuses(1) < 1


def test_other_stages_are_rejected() -> None:
    call = next(iter(Direct().calls(task_of(make_query("Why?"), shown(1, 0)), _Guess()))).call
    with pytest.raises(RequestRejected):
        anyio.run(model("strong"), replace(call, stage=Stage.COMPRESS))


@pytest.mark.parametrize("name", NAMES)
def test_no_configured_name_reaches_a_simulated_model(name: str) -> None:
    assert "simulated" not in PROVIDERS
    with pytest.raises(UnknownModel):
        parse(f"simulated:{name}")


def test_the_packaged_parameters_are_fitted_to_the_published_figures() -> None:
    assert same(fit(read(PUBLISHED)), read(FITTED))


def test_every_published_figure_has_its_source() -> None:
    published = read(PUBLISHED)
    rows = [row for part in published.values() if isinstance(part, list) for row in part]
    rows += [part for part in published.values() if isinstance(part, dict)]
    assert all(row["source"] and row["model"] for row in rows)


def test_only_experiments_and_tests_know_the_simulated_model() -> None:
    import posology.testing

    assert not hasattr(posology.testing, "SimulatedModel")


RIVAL = Passage(id="rival", text="A letter claims that the drug raises the pressure.")
SAID = {KEY: "yes", RIVAL.id: "no"}


def answering(
    profile: str,
    passages: tuple[Passage, ...],
    quotes: QuoteForm,
    said: dict[str, str] = SAID,
    n: int = 0,
) -> list[Answer | Refusal]:
    """By RAG, and by partitions of one passage that answer."""
    complete = SimulatedModel(
        profiles()[profile], gold, lambda text: len(text.split()), answers=lambda _: said
    )
    query = make_query(f"Question {n}: does it help?", form="yes_no")
    task = replace(task_of(query, passages, quotes=quotes), partitions="answer")

    async def run() -> list[Answer | Refusal]:
        return [await Direct()(task, complete), await BriefContext(size=1)(task, complete)]

    return anyio.run(run)


@pytest.mark.parametrize("quotes", FORMS)
def test_partitions_that_answer_get_a_verdict_in_every_form(quotes: QuoteForm) -> None:
    found = [answering("immune", (Passage(id=KEY, text=TEXT),), quotes, n=n) for n in range(20)]
    one, parted = zip(*found, strict=True)
    assert {answer.choice for answer in one if isinstance(answer, Answer)} == {"yes", "no"}
    # one draw decides for both
    assert [getattr(a, "choice", None) for a in one] == [getattr(b, "choice", None) for b in parted]


@pytest.mark.parametrize("quotes", FORMS)
def test_passages_that_contradict_the_gold_conflict_and_are_resolved_at_the_profiles_rate(
    quotes: QuoteForm,
) -> None:
    passages = (Passage(id=KEY, text=TEXT), RIVAL)
    found = [answering("immune", passages, quotes, n=n)[1] for n in range(QUESTIONS)]
    assert all(isinstance(one, Answer) for one in found)
    assert all(any("answer differently" in note for note in one.notes) for one in found)
    resolved = np.mean([right(one) for one in found])
    assert resolved == pytest.approx(profiles()["immune"].resolves, abs=0.1)
    assert all(right(one) == (one.choice == "yes") for one in found if isinstance(one, Answer))


def test_a_contradiction_alone_is_believed() -> None:
    for outcome in answering("immune", (RIVAL,), "sentences"):
        assert isinstance(outcome, Answer)
        assert outcome.choice == "no"
        assert not right(outcome)


def test_free_answers_of_partitions_are_short() -> None:
    complete = SimulatedModel(
        profiles()["immune"],
        gold,
        lambda text: len(text.split()),
        answers=lambda _: {KEY: "It lowers it"},
    )
    query = make_query("What does the drug do?")
    task = replace(task_of(query, shown(4, 0)), partitions="answer")
    outcome = anyio.run(BriefContext(size=1), task, complete)
    assert isinstance(outcome, Answer)
    assert outcome.choice is None


def test_without_answers_no_reply_has_a_verdict() -> None:
    query = make_query("Does it help?", form="yes_no")
    outcome = anyio.run(Direct(), task_of(query, shown(3, 0)), model("immune"))
    assert isinstance(outcome, Answer)
    assert outcome.choice is None
