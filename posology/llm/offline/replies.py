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


def _answer(finding: Found) -> dict[str, Any]:
    if finding.call.quotes == "sentences":
        return {
            "answerable": bool(finding.chosen),
            "statements": _statements(finding, finding.chosen),
            "choice": None,
        }
    return {
        "answerable": bool(finding.chosen),
        "answer": " ".join([*_leaning(finding), _said(finding), f"({NOTICE})"]),
        "choice": None,
        "quotes": [_quote(finding, one) for one in finding.chosen],
    }


def _extract(finding: Found) -> dict[str, Any]:
    """Return findings: each quoted sentence is its own statement."""
    return _unanswered(finding, "answer") | {
        "found": bool(finding.chosen),
        "findings": [
            {"statement": _words(finding, one)} | _named(finding, one) for one in finding.chosen
        ],
    }


def _reduce(finding: Found) -> dict[str, Any]:
    pair = finding.contrast
    # what contradicts is evidence too, wherever it ranks
    shown = finding.chosen + ([pair.speaking_for[0], pair.speaking_against[0]] if pair else [])
    shown = list(dict.fromkeys(shown))
    claims = [_claim(finding, pair)] if pair else []
    ending = _unanswered(finding, "short") or {"claims": claims}
    if finding.call.quotes == "sentences":
        more = [{"text": _contrasted(finding, pair), "sentences": []}] if pair else []
        return {
            "answerable": bool(shown),
            "statements": _statements(finding, shown, more),
            "choice": None,
        } | ending
    said = _said(replace(finding, chosen=shown))
    return {
        "answerable": bool(shown),
        "answer": " ".join(
            [
                *_leaning(finding),
                said,
                *([_contrasted(finding, pair)] if pair else []),
                f"({NOTICE})",
            ]
        ),
        "choice": None,
        "evidence": list(dict.fromkeys(_finding(one) for one in shown)),
    } | ending


def _unanswered(finding: Found, field: str) -> dict[str, Any]:
    """Return an empty short answer, if one is asked for: this reader quotes, and cannot say which quotes answer alike."""
    schema = finding.call.schema
    return {field: "", "choice": None} if schema and field in schema.model_fields else {}


def _compress(finding: Found) -> dict[str, Any]:
    """Return summaries: whole sentences, in order."""
    chosen = sorted(finding.chosen, key=lambda one: (one.excerpt, one.sentence.start))
    return {
        "summaries": [
            {
                "passage": f"P{excerpt + 1}",
                "summary": " ".join(_words(finding, one) for one in own),
            }
            for excerpt, own in groupby(chosen, key=lambda one: one.excerpt)
        ]
    }


def _contrasted(finding: Found, pair: Contrast) -> str:
    supporting, opposing = (
        _passage(finding, side[0]).id for side in (pair.speaking_for, pair.speaking_against)
    )
    if pair.answers is not None:
        return (
            f"By a small trained model, {supporting} answers “{pair.answers[0]}” and {opposing} “{pair.answers[1]}”; please judge "
            "whether they contradict each other."
        )
    if pair.judged:
        return (
            f"By a small trained model, {supporting} and {opposing} contradict each other; please judge whether they do, and on "
            "what."
        )
    return (
        f"By their wording alone, {supporting} and {opposing} contradict each other; please judge whether they do, and on "
        "what."
    )


def _claim(finding: Found, pair: Contrast) -> dict[str, Any]:
    return {
        "claim": _words(finding, pair.speaking_for[0]),
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


def _said(finding: Found) -> str:
    if finding.chosen:
        return " ".join(
            f"“{_words(finding, one)}” [{_source(finding, one)}]" for one in finding.chosen
        )
    if finding.language is not None:
        return (
            f"The question seems to be in {finding.language}, and this reader reads English only."
        )
    scores = finding.scores
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


def _leaning(finding: Found) -> list[str]:
    """Return the verdict in words, as the first sentence of an answer."""
    if finding.verdict is None or not finding.chosen:
        return []
    one = finding.verdict
    if one.choice == "maybe":
        return [f"{LEANS} both ways, by a small trained model."]
    return [
        f"{LEANS} {one.choice}, with a probability of {one.probability:.2f} by a small trained model."
    ]


def _quote(finding: Found, one: Scored) -> dict[str, str]:
    return {"passage": f"P{one.excerpt + 1}", "quote": _words(finding, one)}


def _named(finding: Found, one: Scored) -> dict[str, Any]:
    """Return the evidence of a finding."""
    if finding.call.quotes == "sentences":
        return {"sentences": [_number(finding, one)]}
    return {"quotes": [_quote(finding, one)]}


def _number(finding: Found, one: Scored) -> str:
    """Return the name of a sentence."""
    shown = numbered(finding.call.excerpts[one.excerpt])
    return name(one.excerpt, next(at for at, spans in enumerate(shown) if one.sentence in spans))


def _statements(
    finding: Found, chosen: Sequence[Scored], more: Sequence[dict[str, Any]] = ()
) -> list[dict[str, Any]]:
    """Return each sentence as a statement of its own, and the notice; or why there is none."""
    if not chosen:
        return [{"text": f"{_said(replace(finding, chosen=[]))} ({NOTICE})", "sentences": []}]
    return [
        *({"text": text, "sentences": []} for text in _leaning(finding)),
        *({"text": f"“{_words(finding, o)}”", "sentences": [_number(finding, o)]} for o in chosen),
        *more,
        {"text": f"({NOTICE})", "sentences": []},
    ]


def _words(finding: Found, one: Scored) -> str:
    return one.sentence.of(_passage(finding, one).text)


def _passage(finding: Found, one: Scored) -> Passage:
    return finding.call.excerpts[one.excerpt].passage


def _source(finding: Found, one: Scored) -> str:
    """Return the label, year and types of a source."""
    passage = _passage(finding, one)
    # findings have labels of their own, which an answer's reader does not see
    label = passage.id if finding.call.stage is Stage.REDUCE else f"P{one.excerpt + 1}"
    year = [] if passage.year is None else [str(passage.year)]
    return ", ".join([label, *year, *passage.publication_types])
