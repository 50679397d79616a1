"""Partitions that answer: which answers differ, and who resolves that."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from posology.llm.structured import Structured
from posology.query import make_query
from posology.testing import ScriptedModel
from posology.types import (
    Answer,
    Call,
    PartitionMode,
    Passage,
    Query,
    Refusal,
    Resolution,
    Stage,
    Task,
)
from strategies.briefcontext.answers import LONGEST, agree
from strategies.briefcontext.strategy import BriefContext
from tests.support.tasks import retrieval_of

if TYPE_CHECKING:
    from posology.types import QuoteForm

pytestmark = pytest.mark.anyio

OLD = Passage(
    id="n:old",
    text="Aspirin lowered mortality in men.",
    year=1990,
    publication_types=("Case Reports",),
)
TRIAL = Passage(
    id="n:trial",
    text="Aspirin did not lower mortality in men.",
    year=2014,
    publication_types=("Randomized Controlled Trial",),
)
NEWER = Passage(
    id="n:newer",
    text="Aspirin lowered mortality in men again.",
    year=2016,
    publication_types=("Randomized Controlled Trial",),
)
SILENT = Passage(id="n:silent", text="Nothing was seen of it here.")


@dataclass
class Readers:
    """Partitions that answer as they are told to, and a reduce call that gives one answer."""

    answers: Mapping[str, str]
    final: str
    answerable: bool = True
    #: ids of the passages that the reduce call got
    received: list[str] = field(default_factory=list)

    def reply(self, call: Call) -> dict[str, Any]:
        copied = call.quotes == "copied"
        chosen = bool(call.query.choices)
        if call.stage is Stage.EXTRACT:
            (excerpt,) = call.excerpts
            answer = self.answers.get(excerpt.passage.id, "")
            said: dict[str, Any] = {"statement": excerpt.passage.text}
            quote = {"passage": "P1", "quote": excerpt.passage.text}
            said |= {"quotes": [quote]} if copied else {"sentences": ["1.1"]}
            return {
                "found": bool(answer),
                "findings": [said] if answer else [],
                "answer": "" if chosen else answer,
                "choice": answer or None if chosen else None,
            }
        self.received += [excerpt.passage.id for excerpt in call.excerpts]
        ending: dict[str, Any] = {
            "answerable": self.answerable,
            "choice": self.final if chosen else None,
            "short": "" if chosen else self.final,
        }
        if copied:
            return ending | {"answer": "It is so.", "evidence": ["F1"]}
        return ending | {"statements": [{"text": "It is so.", "sentences": ["1.1"]}]}


async def ask(
    readers: Readers,
    passages: Sequence[Passage],
    *,
    query: Query,
    mode: PartitionMode = "answer",
    quotes: QuoteForm = "sentences",
) -> Answer | Refusal:
    model = ScriptedModel(lambda call: json.dumps(readers.reply(call)))
    task = Task(
        query=query,
        retrieval=retrieval_of(query, passages),
        model="openai:test",
        max_tokens=900,
        quotes=quotes,
        partitions=mode,
    )
    return await BriefContext(size=1)(task, Structured(model))


FREE = make_query("Does aspirin lower mortality in men?")
VERDICT = make_query("Does aspirin lower mortality in men?", form="yes_no_maybe")


@pytest.mark.parametrize("quotes", ["sentences", "copied"])
@pytest.mark.parametrize(
    ("query", "yes", "no"), [(FREE, "It does", "It does not"), (VERDICT, "yes", "no")]
)
async def test_the_reduce_call_resolves_answers_that_differ(
    query: Query, yes: str, no: str, quotes: QuoteForm
) -> None:
    readers = Readers(answers={"n:old": yes, "n:trial": no, "n:newer": yes}, final=no)
    found = await ask(readers, [OLD, SILENT, TRIAL, NEWER], query=query, quotes=quotes)
    assert isinstance(found, Answer)
    (conflict,) = found.conflicts
    assert conflict.claim == f"The answer is “{no}”."
    assert conflict.resolution is Resolution.SUPPORTING
    assert [side.passage_id for side in conflict.supporting] == ["n:trial"]
    assert [side.passage_id for side in conflict.opposing] == ["n:old", "n:newer"]
    assert conflict.how.startswith("Resolved by the reduce call")
    assert any(conflict.how in note for note in found.notes)
    assert readers.received == ["n:old", "n:trial", "n:newer"]


@pytest.mark.parametrize(
    ("trial", "final", "conflicts"),
    [
        # an answer that no part gave resolves nothing; parts that agree are no conflict
        ("150 mg", "300 mg", [Resolution.UNRESOLVED]),
        ("75 mg daily", "75 mg", []),
    ],
)
async def test_a_conflict_is_of_answers_that_parts_gave(
    trial: str, final: str, conflicts: list[Resolution]
) -> None:
    readers = Readers(answers={"n:old": "75 mg", "n:trial": trial}, final=final)
    found = await ask(readers, [OLD, SILENT, TRIAL], query=FREE)
    assert isinstance(found, Answer)
    assert [one.resolution for one in found.conflicts] == conflicts


async def test_a_refusal_says_that_parts_differed() -> None:
    readers = Readers(answers={"n:old": "75 mg", "n:trial": "1 g"}, final="", answerable=False)
    found = await ask(readers, [OLD, TRIAL], query=FREE)
    assert isinstance(found, Refusal)
    assert "Parts of the passages answer differently: “75 mg” and “1 g”." in found.notes


async def test_the_rule_takes_losing_answers_off_the_reduce_call() -> None:
    readers = Readers(answers={"n:old": "yes", "n:trial": "no"}, final="no")
    found = await ask(readers, [OLD, TRIAL], query=VERDICT, mode="answer-by-rule")
    assert isinstance(found, Answer)
    assert readers.received == ["n:trial"]
    (conflict,) = found.conflicts
    assert conflict.resolution is Resolution.SUPPORTING
    assert "higher level" in conflict.how
    assert {side.passage_id for side in conflict.opposing} == {"n:old"}


async def test_what_the_rule_does_not_decide_is_left_to_the_reduce_call() -> None:
    readers = Readers(answers={"n:newer": "yes", "n:trial": "no"}, final="yes")
    found = await ask(readers, [TRIAL, NEWER], query=VERDICT, mode="answer-by-rule")
    assert isinstance(found, Answer)
    assert readers.received == ["n:trial", "n:newer"]
    assert found.conflicts[0].how.startswith("Resolved by the reduce call")


async def test_findings_are_no_answers_unless_they_are_asked_for() -> None:
    model = ScriptedModel(lambda _: '{"found": false, "findings": []}')
    task = Task(
        query=FREE,
        retrieval=retrieval_of(FREE, [OLD]),
        model="openai:test",
        max_tokens=None,
    )
    await BriefContext()(task, Structured(model))
    assert [call.prompt.name for call in model.calls] == ["extract"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("yes", "Yes.", True),
        ("yes", "no", False),
        ("no", "No, it does not", True),
        ("75 mg", "75 mg daily", True),
        ("75 mg", "750 mg", False),
        ("1.5 mg", "15 mg", False),
        ("75 mg", "aspirin, 75 mg", True),
        ("1,204", "1204", True),
        ("<5 mg", ">5 mg", False),
        ("≥65 years", "<65 years", False),
        ("-2.3 kg", "2.3 kg", False),
        ("5%", "5 mg", False),
        ("75", "aspirin", False),
        ("effective", "not effective", False),
        ("effective", "isn't effective", False),
        ("sand is better than salt", "salt is better than sand", False),
        ("sand is better than salt", "sand is better than salt in men", True),
        ("mortality was reduced", "mortality reduced in men", True),
        ("hepatitis A", "hepatitis B", False),
        ("a statin", "statins", True),
        ("small cell lung cancer", "non-small cell lung cancer", False),
        ("non-steroidal", "nonsteroidal", True),
        ("the aspirin", "aspirins", True),
        ("Georgia", "Georgetown", False),
        ("", "aspirin", False),
    ],
)
def test_answers_that_are_the_same(one: str, other: str, same: bool) -> None:
    assert agree(one, other) is same
    assert agree(other, one) is same


async def test_an_answer_is_cut_at_its_longest() -> None:
    readers = Readers(answers={"n:old": "dose " * 100, "n:trial": "none"}, final="none")
    found = await ask(readers, [OLD, TRIAL], query=FREE)
    assert isinstance(found, Answer)
    assert len(found.conflicts[0].claim) < LONGEST + 20
