"""The offline reader's reply to each stage: quotes, and a notice that no language model judged them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from types import MappingProxyType
from typing import Any

from posology.llm.offline.choice import PROBABILITY, Scores
from posology.llm.offline.contrast import Contrast
from posology.llm.offline.scores import Scored
from posology.llm.offline.verdict import Verdict
from posology.text.numbering import name, numbered
from posology.types import Call, Passage, Stage

NOTICE = "Quoted by an extractive reader; no language model judged this."
#: how a verdict begins
LEANS = "The passages lean"


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """Finding of a call."""

    call: Call
    scores: Scores
    #: those to quote, or to leave of the passages, best first
    chosen: list[Scored]
    #: of a ``REDUCE`` call, where sentences contradict each other
    contrast: Contrast | None = None
    #: of a yes-no question
    verdict: Verdict | None = None
    #: language of the question; ``None``: English
    language: str | None = None


def _answer(found: Found) -> dict[str, Any]:
    if found.call.quotes == "sentences":
        return {
            "answerable": bool(found.chosen),
            "statements": _statements(found, found.chosen),
            "choice": None,
        }
    return {
        "answerable": bool(found.chosen),
        "answer": " ".join([*_leaning(found), _said(found), f"({NOTICE})"]),
        "choice": None,
        "quotes": [_quote(found, one) for one in found.chosen],
    }


def _extract(found: Found) -> dict[str, Any]:
    """Return findings: each quoted sentence is its own statement."""
    return _unanswered(found, "answer") | {
        "found": bool(found.chosen),
        "findings": [
            {"statement": _words(found, one)} | _named(found, one) for one in found.chosen
        ],
    }


def _reduce(found: Found) -> dict[str, Any]:
    pair = found.contrast
    # what contradicts is evidence too, wherever it ranks
    shown = found.chosen + ([pair.speaking_for[0], pair.speaking_against[0]] if pair else [])
    shown = list(dict.fromkeys(shown))
    claims = [_claim(found, pair)] if pair else []
    ending = _unanswered(found, "short") or {"claims": claims}
    if found.call.quotes == "sentences":
        more = [{"text": _contrasted(found, pair), "sentences": []}] if pair else []
        return {
            "answerable": bool(shown),
            "statements": _statements(found, shown, more),
            "choice": None,
        } | ending
    said = _said(replace(found, chosen=shown))
    return {
        "answerable": bool(shown),
        "answer": " ".join(
            [*_leaning(found), said, *([_contrasted(found, pair)] if pair else []), f"({NOTICE})"]
        ),
        "choice": None,
        "evidence": list(dict.fromkeys(_finding(one) for one in shown)),
    } | ending


def _unanswered(found: Found, field: str) -> dict[str, Any]:
    """Return an empty short answer, if one is asked for: this reader quotes, and cannot say which quotes answer alike."""
    schema = found.call.schema
    return {field: "", "choice": None} if schema and field in schema.model_fields else {}


def _compress(found: Found) -> dict[str, Any]:
    """Return summaries: whole sentences, in order."""
    chosen = sorted(found.chosen, key=lambda one: (one.excerpt, one.sentence.start))
    return {
        "summaries": [
            {
                "passage": f"P{excerpt + 1}",
                "summary": " ".join(_words(found, one) for one in own),
            }
            for excerpt, own in groupby(chosen, key=lambda one: one.excerpt)
        ]
    }


def _contrasted(found: Found, pair: Contrast) -> str:
    one, other = (
        _passage(found, side[0]).id for side in (pair.speaking_for, pair.speaking_against)
    )
    if pair.answers is not None:
        return (
            f"By a small trained model, {one} answers “{pair.answers[0]}” and {other} “{pair.answers[1]}”; please judge "
            "whether they contradict each other."
        )
    if pair.judged:
        return (
            f"By a small trained model, {one} and {other} contradict each other; please judge whether they do, and on "
            "what."
        )
    return (
        f"By their wording alone, {one} and {other} contradict each other; please judge whether they do, and on "
        "what."
    )


def _claim(found: Found, pair: Contrast) -> dict[str, Any]:
    return {
        "claim": _words(found, pair.speaking_for[0]),
        "supporting": list(dict.fromkeys(_finding(one) for one in pair.speaking_for)),
        "opposing": list(dict.fromkeys(_finding(one) for one in pair.speaking_against)),
        # the reader has no view of who is right
        "resolution": "none",
        "reason": _reason(pair),
    }


def _reason(pair: Contrast) -> str:
    if pair.answers is not None:
        return "Grouped by the words that answer, as a small trained model finds them."
    if pair.judged:
        return "Grouped by a small trained model of support."
    return "Grouped by wording alone: words of benefit against words of harm or denial."


def _finding(one: Scored) -> str:
    return f"F{one.excerpt + 1}"


#: reply of each stage
REPLIES: Mapping[Stage, Callable[[Found], dict[str, Any]]] = MappingProxyType(
    {
        Stage.ANSWER: _answer,
        Stage.EXTRACT: _extract,
        Stage.REDUCE: _reduce,
        Stage.COMPRESS: _compress,
    }
)


def _said(found: Found) -> str:
    if found.chosen:
        return " ".join(f"“{_words(found, one)}” [{_source(found, one)}]" for one in found.chosen)
    if found.language is not None:
        return f"The question seems to be in {found.language}, and this reader reads English only."
    scores = found.scores
    if scores.read and scores.rule is PROBABILITY:
        return (
            f"No passage answers the question: the best one has a probability of {scores.best:.2f}, below the "
            f"required {scores.rule.threshold:.2f}."
        )
    if scores.read:
        return (
            "No sentence of the passages is close enough to the question: the closest scores "
            f"{scores.best:.2f}, below the required {scores.rule.threshold:.2f}."
        )
    return "The passages have no text."


def _leaning(found: Found) -> list[str]:
    """Return the verdict in words, as the first sentence of an answer."""
    if found.verdict is None or not found.chosen:
        return []
    one = found.verdict
    if one.choice == "maybe":
        return [f"{LEANS} both ways, by a small trained model."]
    return [
        f"{LEANS} {one.choice}, with a probability of {one.probability:.2f} by a small trained model."
    ]


def _quote(found: Found, one: Scored) -> dict[str, str]:
    return {"passage": f"P{one.excerpt + 1}", "quote": _words(found, one)}


def _named(found: Found, one: Scored) -> dict[str, Any]:
    """Return the evidence of a finding."""
    if found.call.quotes == "sentences":
        return {"sentences": [_number(found, one)]}
    return {"quotes": [_quote(found, one)]}


def _number(found: Found, one: Scored) -> str:
    """Return the name of a sentence."""
    shown = numbered(found.call.excerpts[one.excerpt])
    return name(one.excerpt, next(at for at, spans in enumerate(shown) if one.sentence in spans))


def _statements(
    found: Found, chosen: Sequence[Scored], more: Sequence[dict[str, Any]] = ()
) -> list[dict[str, Any]]:
    """Return each sentence as a statement of its own, and the notice; or why there is none."""
    if not chosen:
        return [{"text": f"{_said(replace(found, chosen=[]))} ({NOTICE})", "sentences": []}]
    return [
        *({"text": text, "sentences": []} for text in _leaning(found)),
        *({"text": f"“{_words(found, o)}”", "sentences": [_number(found, o)]} for o in chosen),
        *more,
        {"text": f"({NOTICE})", "sentences": []},
    ]


def _words(found: Found, one: Scored) -> str:
    return one.sentence.of(_passage(found, one).text)


def _passage(found: Found, one: Scored) -> Passage:
    return found.call.excerpts[one.excerpt].passage


def _source(found: Found, one: Scored) -> str:
    """Return the label, year and types of a source."""
    passage = _passage(found, one)
    # findings have labels of their own, which an answer's reader does not see
    label = passage.id if found.call.stage is Stage.REDUCE else f"P{one.excerpt + 1}"
    year = [] if passage.year is None else [str(passage.year)]
    return ", ".join([label, *year, *passage.publication_types])
