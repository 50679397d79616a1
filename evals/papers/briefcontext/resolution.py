"""BriefContext, section 5.3 and supplementary table 2: conflicts between partitions, and BriefContext against RAG.

A conflict is that partitions of the same passages answer differently. It is resolved rightly if the final answer is right.
BriefContext wins if it is right and RAG is not, and loses if only RAG is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evals.papers.briefcontext.scale import GPT, MIXTRAL
from evals.papers.rows import Result
from evals.papers.suite import Answered
from evals.pooled import shown
from strategies.briefcontext.conclusion import DIFFERENT

CONFLICTS: Mapping[str, str] = {
    "conflict": "share of questions whose partitions answer differently",
    "resolved": "share of these conflicts whose final answer is right",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Contest:
    """Conflicts of a model over the ten settings of table S2: shares of its conflicts, and their number."""

    model: str
    questions: int
    conflicts: int
    resolved: int
    win: float
    tie: float
    lose: float


#: number of conflicts, and percent of wins and losses, by model; 8 then 16 documents, at 0, 25, 50, 75 and 100 %
_S2 = {
    (MIXTRAL, 171): (
        (23, 13.04, 8.70), (20, 30.00, 10.00), (21, 28.57, 9.52), (21, 38.10, 14.29), (22, 22.73, 4.55),
        (23, 8.70, 4.35), (21, 42.86, 9.52), (25, 40.00, 20.00), (21, 42.86, 9.52), (20, 45.00, 10.00),
    ),
    (GPT, 225): (
        (35, 5.71, 20.00), (33, 36.36, 15.14), (28, 28.57, 3.57), (33, 33.33, 12.12), (34, 23.53, 17.65),
        (32, 15.62, 0.00), (32, 28.12, 9.38), (25, 28.00, 12.00), (28, 42.86, 14.28), (33, 30.30, 15.15),
    ),
}  # fmt: skip


def _contest(model: str, resolved: int) -> Contest:
    rows = _S2[model, resolved]
    conflicts = sum(n for n, _, _ in rows)
    win, lose = (sum(row[0] * row[i] / 100 for row in rows) / conflicts for i in (1, 2))
    return Contest(
        model=model,
        questions=1_050,
        conflicts=conflicts,
        resolved=resolved,
        win=win,
        tie=1 - win - lose,
        lose=lose,
    )


PAPER = tuple(_contest(*key) for key in _S2)


def conflict(answered: Answered, *, right: bool) -> dict[str, float | None]:
    """Return :data:`CONFLICTS` of an answer; no values for a single call, or a reader that gives no short answers."""
    outcome = answered.outcome
    if outcome.coverage is None or not answered.verdicts:
        return dict.fromkeys(CONFLICTS)
    found = any(note.startswith(DIFFERENT) for note in outcome.notes)
    return {"conflict": float(found), "resolved": float(right) if found else None}


def versus(
    rows: Sequence[Result], settings: Mapping[str, tuple[str, str]], basis: str
) -> Iterator[str]:
    """Yield a table of conflicts and of wins, ties and losses among them.

    Args:
        rows: with the measures ``right`` and ``conflict``.
        settings: arms of BriefContext and of RAG, by setting.
        basis: which of the figures were fitted.
    """
    yield from ("", "## Conflicts, and BriefContext against RAG among them", "")
    yield f"Basis of simulated readers: {basis}. One draw decides a question for both methods, which makes ties likelier."
    yield ""
    yield "| reader | setting | questions | conflicts | resolved rightly | win | tie | lose |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for one in PAPER:
        yield (
            f"| {one.model} (the paper) | ten settings of 105 questions, table S2 | {one.questions:,} | {one.conflicts} "
            f"| {one.resolved / one.conflicts:.3f} | {one.win:.3f} | {one.tie:.3f} | {one.lose:.3f} |"
        )
    by_arm = {(row.reader, row.arm, row.question): row for row in rows}
    readers = list(dict.fromkeys(row.reader for row in rows))
    for reader in readers:
        every: list[tuple[Result, Result]] = []
        for setting, (parts, rag) in settings.items():
            pairs = [
                (row, by_arm[reader, rag, row.question])
                for row in rows
                if (row.reader, row.arm) == (reader, parts)
                and (reader, rag, row.question) in by_arm
            ]
            every += pairs
            yield _contested(reader, setting, pairs)
        if len(settings) > 1:
            # settings share their questions, so that an interval over rows would be too narrow
            yield _contested(reader, "all settings", every, lambda of: f"{np.mean(of):.3f}")


def _contested(
    reader: str,
    setting: str,
    pairs: Sequence[tuple[Result, Result]],
    form: Callable[[Sequence[float]], str] = shown,
) -> str:
    found = [(one, rag) for one, rag in pairs if one.values["conflict"]]
    cells = [str(len(pairs)), str(len(found)), "–", "–", "–", "–"]
    if found:
        ours, theirs = (
            [bool(row.values["right"]) for row in side] for side in zip(*found, strict=True)
        )
        win = [float(a and not b) for a, b in zip(ours, theirs, strict=True)]
        lose = [float(b and not a) for a, b in zip(ours, theirs, strict=True)]
        tie = [1 - a - b for a, b in zip(win, lose, strict=True)]
        cells[2:] = [form(values) for values in ([float(one) for one in ours], win, tie, lose)]
    return f"| {reader} | {setting} | {' | '.join(cells)} |"
