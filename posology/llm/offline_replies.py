"""The offline reader's reply to each stage: quotes, and that no language model judged them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from posology.llm.offline_choice import THRESHOLD
from posology.llm.offline_scoring import Scored, SentenceScorer
from posology.types import Call, Passage, Stage

NOTICE = "Quoted by an extractive reader; no language model judged this."


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What was found for a call."""

    call: Call
    #: all sentences shown, best first
    scored: list[Scored]
    #: those to quote, best first
    chosen: list[Scored]
    #: tells how like two texts are
    alike: SentenceScorer


def _answer(found: Found) -> dict[str, Any]:
    return {
        "answerable": bool(found.chosen),
        "answer": f"{_said(found)} ({NOTICE})",
        "choice": None,
        "quotes": [_quote(found, one) for one in found.chosen],
    }


def _extract(found: Found) -> dict[str, Any]:
    """Each quoted sentence is its own statement: a reader that judges nothing has no other words."""
    return {
        "found": bool(found.chosen),
        "findings": [
            {"statement": _words(found, one), "quotes": [_quote(found, one)]}
            for one in found.chosen
        ],
    }


def _reduce(found: Found) -> dict[str, Any]:
    return {
        "answerable": bool(found.chosen),
        "answer": f"{_said(found)} ({NOTICE})",
        "choice": None,
        "evidence": list(dict.fromkeys(f"F{one.excerpt + 1}" for one in found.chosen)),
        "claims": [],
    }


#: what each stage's reply is made of
REPLIES: Mapping[Stage, Callable[[Found], dict[str, Any]]] = MappingProxyType(
    {Stage.ANSWER: _answer, Stage.EXTRACT: _extract, Stage.REDUCE: _reduce}
)


def _said(found: Found) -> str:
    if found.chosen:
        return " ".join(f"“{_words(found, one)}” [{_source(found, one)}]" for one in found.chosen)
    if found.scored:
        return (
            "No sentence of the passages is close enough to the question: the closest scores "
            f"{found.scored[0].score:.2f} of the {THRESHOLD:.2f} needed."
        )
    return "There is no text to look for an answer in."


def _quote(found: Found, one: Scored) -> dict[str, str]:
    return {"passage": f"P{one.excerpt + 1}", "quote": _words(found, one)}


def _words(found: Found, one: Scored) -> str:
    return one.sentence.of(_passage(found, one).text)


def _passage(found: Found, one: Scored) -> Passage:
    return found.call.excerpts[one.excerpt].passage


def _source(found: Found, one: Scored) -> str:
    """What a reader of contradicting quotes needs first: how old each is, and of what kind."""
    passage = _passage(found, one)
    # findings have labels of their own, which an answer's reader does not see
    label = passage.id if found.call.stage is Stage.REDUCE else f"P{one.excerpt + 1}"
    year = [] if passage.year is None else [str(passage.year)]
    return ", ".join([label, *year, *passage.publication_types])
