"""Rows of :mod:`evals.live`: a question, what became of it, and whether that is right."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posology.query import make_query
from posology.text.sentences import split
from posology.types import Answer, Passage, Query
from training.gold import rows

if TYPE_CHECKING:
    from evals.live.sets import Asked
    from orchestrator.question.pipeline import Report

Row = dict[str, Any]
#: ways beside the product's own
PLAIN, ALONE, PEER = "plain", "no passages", "paper-qa"
#: a second search after a refused ladder; the same where the first one does not find the question's own passage
SEARCH, HIDDEN = "search", "search, first without"
#: rows that are kept, so that a series goes on from them
KEPT = Path(__file__).parents[1] / "data" / "live.jsonl.gz"


def known_row(one: Asked) -> Row:
    """Return what is known of a question, its right verdict as ``gold``."""
    row = asdict(one)
    return row | {"gold": row.pop("verdict")}


def query_of(one: Asked) -> Query:
    """Return a question as the product takes it."""
    return make_query(one.question, form=one.form)


def outcome_row(one: Asked, found: Report) -> Row:
    """Return what became of a question: answer, quotes and support by ids and offsets."""
    outcome = found.outcome
    row: Row = {
        "strategy": outcome.strategy,
        "reason": found.decision.reason,
        "doses": [asdict(one.dose) for one in (found.decision, found.decision.then) if one],
        "quotes": found.request.quotes,
        "support_mode": found.request.support,
        "partition_size": found.request.partition_size,
        "retrieved": [p.passage.id for p in found.retrieval.passages],
        "notes": list(outcome.notes),
        "rungs": len(outcome.rungs),
    }
    if not isinstance(outcome, Answer):
        return row | graded(one, None, None) | {"text": outcome.reason}
    support = outcome.support.sentences if outcome.support else ()
    kept = outcome.citations
    spans = {p.passage.id: p.passage for p in found.retrieval.passages}
    gold = _gold_spans(one, spans)
    return (
        row
        | graded(one, outcome.text, outcome.choice)
        | {
            "outcome": "answered" if outcome.supported else "unsupported",
            "citations": [[c.passage_id, c.start, c.end] for c in kept],
            "dropped": outcome.dropped_quotes,
            "gold_quoted": None
            if not gold
            else any(
                c.passage_id == one.passage and c.start < end and c.end > start
                for c in kept
                for start, end in gold
            ),
            "statements": [
                {
                    "span": [s.start, s.end],
                    "citations": list(s.citations),
                    "refused": [[c.passage_id, c.start, c.end] for c in s.refused],
                }
                for s in outcome.statements
            ],
            "support": [
                {
                    "span": [s.start, s.end],
                    "backing": s.backing.value,
                    "p": s.probability,
                    "failed": [r.value for r in s.failed],
                }
                for s in support
            ],
        }
    )


def _gold_spans(one: Asked, passages: Mapping[str, Passage]) -> list[tuple[int, int]]:
    if one.passage not in passages or not one.sentences:
        return []
    spans = list(split(passages[one.passage].text))
    return [(spans[i - 1].start, spans[i - 1].end) for i in one.sentences if i <= len(spans)]


def graded(one: Asked, text: str | None, verdict: str | None) -> Row:
    """Return a row of an answer, ``None`` for a refusal, with whether it is right; ``None``: nobody can tell."""
    right: bool | None = None
    if text is not None and one.verdict is not None:
        right = verdict == one.verdict
    elif text is not None and one.words:
        right = any(_plain(word) in _plain(text) for word in one.words)
    elif not one.answerable:
        right = text is None
    return {
        "outcome": "refused" if text is None else "answered",
        "text": text,
        "verdict": verdict,
        "right": right,
    }


def _plain(text: str) -> str:
    said = re.findall(r"(?:[^\W_]|[.%])+", text.lower().replace(" %", "%"))
    return f" {' '.join(said)} ".replace(". ", " ")


def key_of(row: Row) -> tuple[str, str, str]:
    """Return model, way and question of a row."""
    return row["model"], row["way"], f"{row['set']}/{row['id']}"


def all_rows(new: Path) -> list[Row]:
    """Return the rows that are kept and new ones, of each question the last, by model, way and question."""
    found: dict[tuple[str, str, str], Row] = {}
    for row in (*(rows(KEPT) if KEPT.exists() else ()), *_new(new)):
        found[key_of(row)] = row
    return [found[key] for key in sorted(found)]


def keep(new: Path) -> None:
    """Write all rows to the file of those that are kept, without the words of data sets; equal rows give equal bytes."""
    lines = "".join(f"{json.dumps(_bare(row), ensure_ascii=False)}\n" for row in all_rows(new))
    KEPT.write_bytes(gzip.compress(lines.encode(), mtime=0))


def _bare(row: Row) -> Row:
    """Return a row without its question, and with the mere fact that words of its answer are known."""
    return {name: value for name, value in row.items() if name != "question"} | {
        "words": bool(row["words"])
    }


def _new(path: Path) -> Iterator[Row]:
    if path.exists():
        with path.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)
