"""The offline reader with a scripted cross-encoder, which scores sentences by marks in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.llm.offline import reader as offline
from posology.llm.offline.answering import KEPT, AnswerScorer, Evidence, KeptReadings, probability
from posology.llm.offline.candidates import WINDOW, Candidates, spans
from posology.llm.offline.choice import ANSWERS, LESS_PROBABLE, LESS_PROBABLE_ELSEWHERE
from posology.llm.offline.contrast import LIMITS, claim_of
from posology.llm.offline.reader import ExtractiveReader
from posology.llm.offline.verdict import lean, verdict
from posology.text.sentences import split
from posology.types import Excerpt, Passage, Reading, Sentence, Stage, Stance, TokenVectors
from prompts.extract import ExtractReply
from prompts.reduce import Claim, ReduceReply
from prompts.rewrite import SummaryReply
from tests.unit.offline.test_reader import WordEncoder, make_call, reply_of, words

if TYPE_CHECKING:
    from numpy.typing import NDArray

pytestmark = pytest.mark.anyio


class ScriptedPassageReader:
    """Scores a sentence by the first mark in it; a window by its best sentence."""

    name = "scripted"

    def __init__(self, scores: Mapping[str, float]) -> None:
        self._scores = scores
        self.texts: list[str] = []

    def read(self, question: str, excerpts: Sequence[Excerpt]) -> list[Reading]:
        return [self._reading(one) for one in excerpts]

    def _reading(self, excerpt: Excerpt) -> Reading:
        texts = [one.of(excerpt.passage.text) for one in excerpt.sentences]
        self.texts += texts
        found = [
            next((score for mark, score in self._scores.items() if mark in text), 0.0)
            for text in texts
        ]
        return Reading(sentences=np.array(found, np.float32), answers=max(found, default=0.0))


class ScriptedJudge:
    """Takes a side by a word of the text, for claims that end in yes; the other for those that end in no."""

    name = "scripted"

    def __init__(self, sides: Mapping[str, Stance]) -> None:
        self._sides = sides
        self.claims: list[str] = []

    def judge(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        self.claims += [claim for claim, _ in pairs]
        return np.array([self._row(*pair) for pair in pairs], np.float32).reshape(-1, 3)

    def _row(self, claim: str, text: str) -> list[float]:
        side = next((s for word, s in self._sides.items() if word in text), Stance.SILENT)
        row = [0.9 if side is one else 0.05 for one in Stance]
        return [row[1], row[0], row[2]] if claim.endswith(" No.") else row


class AlikeEncoder:
    """Finds every token of every text equally like the question, which is encoded first."""

    def __init__(self, likeness: float) -> None:
        self._likeness = likeness

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        found = WordEncoder().token_vectors(texts)
        texts_look = np.array([self._likeness, np.sqrt(1 - self._likeness**2)], np.float32)
        looks = [np.array([1, 0], np.float32), *[texts_look] * (len(texts) - 1)]
        return [
            replace(one, vectors=np.tile(look, (len(one.ids), 1)))
            for one, look in zip(found, looks, strict=True)
        ]


def pieces(texts: Sequence[str]) -> list[list[int]]:
    return [[sum(map(ord, w.strip(".?,").lower())) % 5_000 for w in t.split()] for t in texts]


Made = Callable[..., ExtractiveReader]


def make(
    scores: Mapping[str, float],
    *,
    judge: ScriptedJudge | None = None,
    budget: int = 1_000,
    inner: ScriptedPassageReader | None = None,
    likeness: float = 0.8,
) -> ExtractiveReader:
    found = inner or ScriptedPassageReader(scores)
    return ExtractiveReader(
        WordEncoder(),
        words,
        answers=lambda: AnswerScorer(
            KeptReadings(found), Candidates(pieces, budget), AlikeEncoder(likeness)
        ),
        judge=None if judge is None else lambda: judge,
    )


TRIAL = "The aim was to test zinc against colds. Colds were shorter by two days. Zinc is a metal."


async def test_the_sentence_that_answers_is_quoted_before_the_one_that_repeats_the_question() -> (
    None
):
    reader = make({"shorter": 0.9, "aim": 0.3})
    completion = await reader(make_call("Does zinc help against colds?", [TRIAL]))
    reply = reply_of(completion)
    assert [one.quote for one in reply.quotes] == ["Colds were shorter by two days."]
    assert completion.served_model.endswith("+scripted")


@pytest.mark.parametrize("answers", [0.1, 0.5, 0.95])
async def test_a_question_is_refused_by_odds_and_likeness_together(answers: float) -> None:
    question = "Does zinc help?"
    given = {
        likeness: probability(Evidence.of(question, answers=answers, likeness=likeness))
        for likeness in np.linspace(0.2, 0.9, 8).tolist()
    }
    for likeness, likely in given.items():
        reader = make({"shorter": answers}, likeness=likeness)
        reply = reply_of(await reader(make_call(question, [TRIAL])))
        assert reply.answerable == (likely >= ANSWERS)
        if not reply.answerable:
            assert f"probability of {likely:.2f}, below the required {ANSWERS:.2f}" in reply.answer
    assert min(given.values()) < ANSWERS < max(given.values())


def test_more_of_each_is_more_probable() -> None:
    less, more = ({"answers": 0.3, "likeness": 0.5}, {"answers": 0.6, "likeness": 0.6})
    for name, value in more.items():
        high = probability(Evidence.of("Zinc?", **(less | {name: value})))
        assert high > probability(Evidence.of("Zinc?", **less))
    assert 0 <= probability(Evidence.of("", answers=0.0, likeness=0.0)) < 0.01


async def test_quotes_are_the_most_probable_sentences_of_any_passage() -> None:
    top = 0.95
    near, elsewhere = top - LESS_PROBABLE / 2, top - LESS_PROBABLE_ELSEWHERE / 2
    far = top - LESS_PROBABLE_ELSEWHERE * 1.5
    reader = make({"first": elsewhere, "second": top, "third": near, "fourth": far})
    call = make_call("Zinc?", ["Zinc first.", "Zinc second. Zinc third.", "Zinc fourth."])
    quotes = [one.quote for one in reply_of(await reader(call)).quotes]
    assert quotes == ["Zinc second.", "Zinc third.", "Zinc first."]


async def test_only_the_windows_with_the_questions_words_are_read() -> None:
    inner = ScriptedPassageReader({"warfarin": 0.9})
    texts = ["Rain fell on the hills again today.", "The warfarin dose was five milligrams."]
    reply = reply_of(
        await make({}, budget=8, inner=inner)(make_call("What was the warfarin dose?", texts))
    )
    assert inner.texts == texts[1:]
    assert reply.quotes[0].quote == texts[1]


async def test_a_text_is_read_once_for_a_question() -> None:
    inner = ScriptedPassageReader({"shorter": 0.9})
    reader = make({}, inner=inner)
    await reader(make_call("Does zinc help?", [TRIAL]))
    assert len(inner.texts) == 3
    await reader(make_call("Does zinc help?", [TRIAL, "Zinc again."]))
    assert inner.texts[3:] == ["Zinc again."]
    await reader(make_call("Does tin help?", [TRIAL]))
    assert len(inner.texts) == 7


def test_readings_are_forgotten_at_last() -> None:
    inner = ScriptedPassageReader({})
    kept = KeptReadings(inner)
    (excerpt,) = make_call("", ["One sentence."]).excerpts
    for number in range(KEPT + 1):
        kept.read(str(number), [excerpt])
    kept.read(str(KEPT), [excerpt])
    assert len(inner.texts) == KEPT + 1
    kept.read("0", [excerpt])
    assert len(inner.texts) == KEPT + 2


@pytest.mark.parametrize(
    "question", ["Le zinc est-il efficace contre le rhume ?", "Hilft Zink gegen die Erkältung?"]
)
async def test_another_language_is_refused_and_named(question: str) -> None:
    reply = reply_of(await make({"shorter": 0.99})(make_call(question, [TRIAL])))
    assert not reply.answerable
    assert "reads English only" in reply.answer
    assert ("French" in reply.answer) == ("rhume" in question)


async def test_findings_and_shortening_use_the_same_scores() -> None:
    reader = make({"shorter": 0.9})
    call = make_call("Zinc?", [TRIAL], stage=Stage.EXTRACT, schema=ExtractReply)
    found = (await reader(call)).parsed
    assert isinstance(found, ExtractReply)
    assert [one.statement for one in found.findings] == ["Colds were shorter by two days."]
    # one sentence fits
    short = make_call("Zinc?", [TRIAL], stage=Stage.COMPRESS, schema=SummaryReply, max_tokens=14)
    left = (await reader(short)).parsed
    assert isinstance(left, SummaryReply)
    assert [one.summary for one in left.summaries] == ["Colds were shorter by two days."]


PRO, CON = "Colds were shorter with zinc.", "Zinc and placebo were alike."


async def test_a_judge_assigns_the_sides() -> None:
    judge = ScriptedJudge({"shorter": Stance.SUPPORTS, "alike": Stance.CONTRADICTS})
    reader = make({"Colds": 0.9, "alike": 0.8, "metal": 0.7}, judge=judge)
    call = make_call(
        "Does zinc help against colds?",
        [CON, PRO, "Zinc is a metal."],
        stage=Stage.REDUCE,
        schema=ReduceReply,
    )
    reply = (await reader(call)).parsed
    assert isinstance(reply, ReduceReply)
    (claim,) = reply.claims
    assert (claim.claim, claim.supporting, claim.opposing) == (PRO, ["F2"], ["F1"])
    assert "small trained model" in claim.reason
    assert set(judge.claims) == {"Does zinc help against colds? Yes."}
    assert "wording" not in reply.answer


async def test_a_passage_on_both_sides_is_on_neither() -> None:
    judge = ScriptedJudge({"shorter": Stance.SUPPORTS, "alike": Stance.CONTRADICTS})
    reader = make({"Colds": 0.9, "alike": 0.8}, judge=judge)
    call = make_call(
        "Does zinc help?", [f"{CON} {PRO}", PRO], stage=Stage.REDUCE, schema=ReduceReply
    )
    reply = (await reader(call)).parsed
    assert isinstance(reply, ReduceReply)
    assert reply.claims == []


@pytest.mark.parametrize(
    ("question", "claim"),
    [
        ("Does zinc help?", "Does zinc help? Yes."),
        ("Zinc shortens colds.", "Zinc shortens colds."),
    ],
)
def test_claims(question: str, claim: str) -> None:
    assert claim_of(question) == claim


OPEN = "How long is a cold with zinc?"


class Spans:
    """Finds the words between underscores, with one probability."""

    name = "spans"

    def __init__(self, probability: float) -> None:
        self._probability = probability

    def read(self, question: str, excerpts: Sequence[Excerpt]) -> list[Reading]:
        return [self._reading(one) for one in excerpts]

    def _reading(self, excerpt: Excerpt) -> Reading:
        start, end = (place(excerpt.passage.text, "_") for place in (str.find, str.rfind))
        return Reading(
            sentences=np.full(len(excerpt.sentences), 0.5, np.float32),
            answers=self._probability,
            span=Sentence(start=start + 1, end=end) if start < end else None,
        )


@pytest.mark.parametrize(
    ("texts", "sides"),
    [
        (["It was _five days_.", "It took _seven days_."], (["F1"], ["F2"])),
        (["It was _5 days_.", "It was _5_.", "It took _7 days_."], (["F1", "F2"], ["F3"])),
        # the same words, another kind of answer, none, and too many words for a number or a name
        (["It was _five days_.", "It took _the five days_."], None),
        (["It was _5 days_.", "It depended on _age_."], None),
        (["It was _five days_.", "Zinc is a metal."], None),
        (["It was _five days_.", "It was _as long as in those who got placebo in spring_."], None),
        # a passage with both answers
        (["It was _five days_.", "It took _seven days_, not five."], None),
    ],
)
async def test_passages_with_different_answers_are_on_different_sides(
    texts: list[str], sides: tuple[list[str], list[str]] | None
) -> None:
    claims = await claims_of(texts, 0.9)
    assert [(one.supporting, one.opposing) for one in claims] == ([sides] if sides else [])
    if sides:
        assert claims[0].reason.startswith("Grouped by the words that answer")
    assert not await claims_of(texts, LIMITS.answers - 0.01)


async def claims_of(texts: list[str], likely: float) -> list[Claim]:
    judge = ScriptedJudge({})
    reader = ExtractiveReader(
        WordEncoder(),
        words,
        answers=lambda: AnswerScorer(Spans(likely), Candidates(pieces, 10_000), AlikeEncoder(0.8)),
        judge=lambda: judge,
    )
    call = make_call(OPEN, texts, stage=Stage.REDUCE, schema=ReduceReply)
    reply = (await reader(call)).parsed
    assert isinstance(reply, ReduceReply)
    assert not judge.claims
    said = "By a small trained model, p:0 answers"
    assert (said in reply.answer) == bool(reply.claims)
    return reply.claims


def test_verdicts() -> None:
    judge = ScriptedJudge({"shorter": Stance.SUPPORTS, "alike": Stance.CONTRADICTS})
    asked = "Does zinc help against colds?"
    yes, no = verdict(asked, [PRO], judge), verdict(asked, [CON], judge)
    assert yes is not None
    assert no is not None
    assert (yes.choice, no.choice) == ("yes", "no")
    assert yes.probability == pytest.approx(0.9)
    both = verdict(asked, [PRO, CON, CON], judge)
    assert both is not None
    assert both.choice == "maybe"
    assert verdict(asked, ["Zinc is a metal."], judge) is None
    assert lean("How does zinc help?", [PRO], judge) is None
    assert lean(asked, [], judge) is None


async def test_a_verdict_is_shown_only_where_it_is_switched_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judge = ScriptedJudge({"shorter": Stance.SUPPORTS})
    call = make_call("Does zinc help against colds?", [TRIAL])
    reader = make({"shorter": 0.9}, judge=judge)
    assert "lean" not in reply_of(await reader(call)).answer
    monkeypatch.setattr(offline, "SHOWN", True)
    reply = reply_of(await reader(call))
    assert reply.answer.startswith("The passages lean yes, with a probability of 0.90")
    # the form of the reply stays: a verdict is a language model's
    assert reply.choice is None


@given(st.lists(st.integers(0, 2 * WINDOW), max_size=40))
def test_windows_partition_the_sentences(tokens: list[int]) -> None:
    found = list(spans(tokens))
    assert [i for first, end in found for i in range(first, end)] == list(range(len(tokens)))
    assert all(end - first == 1 or sum(tokens[first:end]) <= WINDOW for first, end in found)


def test_the_best_window_is_read_however_long() -> None:
    passage = Passage(id="p:0", text="Zinc is a metal of many uses in the body.")
    chosen = Candidates(pieces, 1)(
        "zinc", [Excerpt(passage=passage, sentences=split(passage.text))]
    )
    assert len(chosen.read) == 1
    assert Candidates(pieces, 1)("zinc", []).read == ()
