"""Replies of real models, recorded by ``python -m evals.live record``, and the questions run on them once more.

A file of ``tests/recorded`` has one question a line: passages by their ids in the shared data, never their text; each call by
its stage and its prompt's digest, with the reply as it came; and what became of it. The replies are the model's. The
passages are read from the shared data, and a row whose passages have changed since is not run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evals.live.sets import HALVES, SETS, Asked, Document, asked, documents
from orchestrator.question.answering import Answerer, no_judge
from orchestrator.question.machine import task_of
from orchestrator.question.request import Request
from posology.errors import PosologyError
from posology.llm.structured import Structured
from posology.query import make_query
from posology.seams import SupportJudge
from posology.types import Answer, Call, Completion, Dose, Finish, Passage, Refusal, Usage
from posology.types.tables import Document as Paper
from prompts.template import digests
from strategies import make
from strategies.evidence import truncate_task, whole
from strategies.tables.presets import PICO
from strategies.tables.reading import Reading
from tests.support.tasks import retrieval_of

if TYPE_CHECKING:
    from strategies.tables.cells import TableRow

#: folder of the recordings, and of the data that their passages are in
RECORDED = Path(__file__).parent.parent / "recorded"
DATA = Path(__file__).parent.parent.parent.parent / "shared" / "data"
#: the way of a row that fills in the cells of a table
CELLS = "cells"
#: any model without families of its own
MODEL = "openai:recorded"

Row = dict[str, Any]


class NotRecorded(AssertionError):
    """A question asks for a call that was not made when it was recorded."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Library:
    """Questions and passages of the shared data."""

    asked: Mapping[str, Asked]
    documents: Mapping[str, Document]

    def passages(self, row: Row) -> list[Passage] | None:
        """Return the passages of a row in their order; ``None``: they are other ones by now."""
        found = [self.documents.get(one) for one in row["passages"]]
        known = [Passage(id=one.id, title=one.title, text=one.text) for one in found if one]
        return known if digest(known) == row["data"] else None


def key(row: Row) -> str:
    """Return the name of a row's question among all sets."""
    return f"{row['set']}/{row['id']}"


def digest(passages: list[Passage]) -> str:
    """Return the digest of passages' texts, by which a row knows that they are the same."""
    return hashlib.sha256("\0".join(one.text for one in passages).encode()).hexdigest()[:12]


def library(data: Path) -> Library:
    """Read the questions and passages of every set. Blocking."""
    found = [one for name in SETS for part in HALVES for one in asked(data, name, part)]
    return Library(
        asked={one.key: one for one in found}, documents={one.id: one for one in documents(data)}
    )


def rows(folder: Path = RECORDED) -> Iterator[Row]:
    """Read every recording."""
    for path in sorted(folder.glob("*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def stale(row: Row) -> int:
    """Return the calls of a row whose prompt has changed since; those of second calls have none of their own."""
    found = 0
    for call in row["calls"]:
        name, _, was = call["prompt"].partition("@")
        found += digests([name])[name] != was
    return found


async def outcome(row: Row, known: Library) -> Row:
    """Run a question on its recorded replies; an error that ends it is its outcome."""
    passages = known.passages(row)
    assert passages is not None
    try:
        if row["way"] == CELLS:
            reading = Reading(fields=PICO, model=MODEL)
            return _cells(await reading(Paper.of(passages), _replies(row)))
        return summary(await replayed(row, known.asked[key(row)], passages))
    except PosologyError as error:
        return {"error": type(error).__name__}


async def replayed(
    row: Row,
    asked: Asked,
    passages: list[Passage],
    judge: Callable[[], SupportJudge | None] = no_judge,
) -> Answer | Refusal:
    """Answer a question from its recorded replies.

    Args:
        row: the recording.
        asked: the question.
        passages: those that were retrieved.
        judge: judges support; without one, rules alone do.

    Raises:
        NotRecorded: it asks for another call than those that were recorded.
    """
    complete = _replies(row)
    query = make_query(asked.question, form=asked.form)
    request = Request(query=query, model=MODEL, quotes=row["quotes"], support=row["support"])
    retrieval = retrieval_of(query, passages)
    found: Answer | Refusal | None = None
    for given in row["doses"]:
        dose = Dose(**{**given, "rungs": tuple(given["rungs"])})
        task = task_of(request, retrieval)
        strategy = make(dose, partition_size=row["partition_size"])
        run = partial(strategy, truncate_task(task, dose))
        found = await Answerer(judge)(
            run, complete, request=request, excerpts=whole(retrieval.passages)
        )
        if isinstance(found, Answer):
            break
    assert found is not None
    return found


def _replies(row: Row) -> Structured:
    """Return what answers each call with the recorded reply to it."""
    calls = list(row["calls"])

    async def reply(call: Call) -> Completion:
        shown = [one.passage.id for one in call.excerpts]
        for number, one in enumerate(calls):
            if one["stage"] == call.stage.value and one["shown"] == shown:
                return _completion(calls.pop(number))
        raise NotRecorded(f"{call.stage} over {shown}")

    return Structured(reply)


def _completion(call: Row) -> Completion:
    usage = (
        None
        if call["tokens_in"] is None
        else Usage(input=call["tokens_in"], output=call["tokens_out"])
    )
    return Completion(
        text=call["reply"],
        usage=usage,
        finish=Finish(call["finish"]),
        served_model="recorded",
        request_id=None,
    )


def summary(outcome: Answer | Refusal) -> Row:
    """Return what a test compares of an outcome, without words of passages."""
    if isinstance(outcome, Refusal):
        return {"answered": False, "text": outcome.reason, "notes": list(outcome.notes)}
    support = outcome.support.sentences if outcome.support else ()
    return {
        "answered": True,
        "text": outcome.text,
        "choice": outcome.choice,
        "citations": [[one.passage_id, one.start, one.end] for one in outcome.citations],
        "dropped": outcome.dropped_quotes,
        "notes": list(outcome.notes),
        "support": [
            [one.backing.value, sorted(rule.value for rule in one.failed)] for one in support
        ],
    }


def _cells(row: TableRow) -> Row:
    return {
        "cells": [
            {
                "field": cell.field.name,
                "value": cell.value,
                "gap": cell.gap.name if cell.gap else None,
                "citations": [[one.passage_id, one.start, one.end] for one in cell.citations],
            }
            for cell in row.cells
        ]
    }
