"""Makes the calls of one version of Posology with a scripted model and writes them down, for :mod:`evals.cost`.

Usage: ``python -P evals/cost_calls.py QUESTIONS.json CALLS.json [sentences|copied]``, with ``PYTHONPATH`` at a version.

It imports what versions from da44b34 on have. The model answers from the gold passage alone, with the passage's own
sentences as statements, in the form that a call asks for; in every version it says the same.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from posology.llm.schema import response_schema
from posology.llm.structured import Structured
from posology.query import make_query
from posology.testing import ScriptedModel
from posology.text.sentences import split
from posology.types import (
    Call,
    Hit,
    Passage,
    Ranking,
    Refusal,
    Retrieval,
    Retrieved,
    Stage,
    Task,
)
from strategies.direct import Direct
from strategies.ladder import Ladder

try:
    _briefcontext = import_module("strategies.briefcontext.strategy")
except ImportError:
    # as it was in one module
    _briefcontext = import_module("strategies.briefcontext")

#: strategies by name, each as the router runs it
STRATEGIES: dict[str, Callable[[], Any]] = {
    "direct": Direct,
    "ladder": lambda: Ladder(Direct(), rungs=(2, 4, 8)),
    "briefcontext": lambda: _briefcontext.BriefContext(size=3),
    "briefcontext, one a partition": lambda: _briefcontext.BriefContext(size=1),
}
_MISSING = "The passages do not say whether it does."


def _evidence(call: Call, gold: str) -> list[tuple[int, int, str]]:
    """Return the last two sentences of the gold passage: its place, each one's place in it, its words."""
    found = []
    for place, excerpt in enumerate(call.excerpts):
        if excerpt.passage.id == gold:
            at = len(excerpt.sentences)
            found += [
                (place, n, excerpt.sentences[n].of(excerpt.passage.text))
                for n in range(max(0, at - 2), at)
            ]
    return found


def _reply(call: Call, gold: str) -> dict[str, Any]:
    evidence = _evidence(call, gold)
    quotes = [{"passage": f"P{p + 1}", "quote": words} for p, _, words in evidence]
    names = [f"{p + 1}.{n + 1}" for p, n, _ in evidence]
    fields = call.schema.model_fields if call.schema is not None else {}
    if call.stage is Stage.EXTRACT:
        numbered = getattr(call, "quotes", "copied") == "sentences"
        findings = [
            {"statement": words} | ({"sentences": [name]} if numbered else {"quotes": [quote]})
            for (_, _, words), name, quote in zip(evidence, names, quotes, strict=True)
        ]
        return {"found": bool(findings), "findings": findings}
    text = " ".join(words for _, _, words in evidence) or _MISSING
    reply: dict[str, Any] = {"answerable": bool(evidence), "choice": None}
    if "statements" in fields:
        said = [
            {"text": words, "sentences": [name]}
            for (_, _, words), name in zip(evidence, names, strict=True)
        ]
        reply["statements"] = said or [{"text": _MISSING, "sentences": []}]
    else:
        reply["answer"] = text
    if "quotes" in fields:
        reply["quotes"] = quotes
    if "evidence" in fields:
        reply["evidence"] = [f"F{p + 1}" for p in dict.fromkeys(p for p, _, _ in evidence)]
    if "claims" in fields:
        reply["claims"] = []
    return reply


def _task(asked: dict[str, Any], form: str | None) -> Task:
    query = make_query(asked["question"])
    passages = [Passage(**one) for one in asked["passages"]]
    ranking = Ranking(method="dense", hits=tuple(Hit(passage_id=p.id, score=1.0) for p in passages))
    retrieved = tuple(
        Retrieved(
            passage=p,
            sentences=split(p.text),
            vector=np.zeros(2, np.float32),
            sentence_vectors=np.zeros((len(split(p.text)), 2), np.int8),
        )
        for p in passages
    )
    task = Task(
        query=query,
        retrieval=Retrieval(
            query=query,
            passages=retrieved,
            query_vector=np.zeros(2, np.float32),
            dense=ranking,
            bm25_rerank=ranking,
            bm25=ranking,
            fused=ranking,
            index_version="pool@1",
        ),
        model="openai:m",
        max_tokens=None,
    )
    # versions before have no such field
    changed: dict[str, Any] = {} if form is None else {"quotes": form}
    return replace(task, **changed)


async def _calls(asked: dict[str, Any], strategy: str, form: str | None) -> list[dict[str, Any]]:
    model = ScriptedModel(lambda call: json.dumps(_reply(call, asked["gold"]), ensure_ascii=False))
    outcome = await STRATEGIES[strategy]()(_task(asked, form), Structured(model))
    dropped = 0 if isinstance(outcome, Refusal) else outcome.dropped_quotes
    made = []
    for call in model.calls:
        schema = None if call.schema is None else response_schema(call.schema).schema
        made.append(
            {
                "stage": str(call.stage),
                "messages": [message.content for message in call.messages],
                "schema": json.dumps(schema),
                "reply": json.dumps(_reply(call, asked["gold"]), ensure_ascii=False),
                "dropped": dropped if call is model.calls[-1] else 0,
            }
        )
    return made


def main(questions: str, out: str, form: str | None = None) -> None:
    """Write the calls of each strategy for each question."""
    asked = json.loads(Path(questions).read_text(encoding="utf-8"))

    async def every() -> dict[str, list[list[dict[str, Any]]]]:
        return {name: [await _calls(one, name, form) for one in asked] for name in STRATEGIES}

    Path(out).write_text(json.dumps(asyncio.run(every())), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
