"""Content of a report, before it is Markdown or HTML: remarks and tables of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orchestrator.evaluation.forms import (
    CellOutput,
    DifferenceMeasured,
    EvalOutput,
    Measured,
    Outcome,
)
from orchestrator.evaluation.measures import DRAWS
from orchestrator.evaluation.simulated import is_simulated
from posology.published.answers import judged

#: where there is no figure
NONE = "–"
_WAY = ("suite", "policy", "model")
_EVIDENCE = (
    "citation precision",
    "citation recall",
    "retrieval recall",
    "supported",
    "sentences",
)
_COST = ("calls", "tokens", "$ a question", "$ a right answer", "s, median", "s, 95 %")
#: how the measures are defined, a line each; below every report
METHOD = f"""
Brackets are 95 % bootstrap intervals over questions ({DRAWS:,} resamples). Differences are paired, question by question.
Right: the verdict is the known one; without a known verdict, the answer has all words of an accepted answer (stemmed); without \
accepted answers, it cites a gold passage. If the literature does not answer a question, a refusal is right.
Refused: a refusal of a question that has an answer. Undecided: an answer without the verdict that the question asks for. \
Failed: no answer, because a call failed. Shares are of all questions asked.
Citation precision: share of the cited passages that are gold. Citation recall: share of the gold passages that are cited, over \
answered questions. Retrieval recall: share of the gold passages that are retrieved. Those that the index lacks count as missed.
Supported: share of all checked sentences, removed ones included, that their quotes support.
Costs are those of the ledger. Questions with an unknown cost are left out of them. Durations include waiting for the questions \
that were asked at the same time.
""".strip().splitlines()


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table of text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    #: number of leading columns that hold names, not figures
    names: int = len(_WAY)


def remarks(out: EvalOutput) -> Iterator[str]:
    """Yield what a reader must know before the figures."""
    yield f"Index: {out.index}. Spent: ${out.spent_usd:f}."
    for name, count in out.skipped.items():
        yield f"{name}: {count:,} records left out."
    missing = sum(cell.missing for cell in out.cells)
    if missing:
        yield f"{missing:,} questions were not asked yet: the figures are of a part of the run."
    if any(not judged(cell.model) for cell in out.cells):
        yield (
            "offline:extractive is no language model: it quotes sentences that resemble the question. Its figures say nothing about "
            "language models."
        )
    if any(is_simulated(cell.model) for cell in out.cells):
        yield (
            "Figures of simulated:… are SIMULATED: no model answered. They show what would follow if a model overlooked, misread and "
            "refused as the published ones of its profile did."
        )


def tables(out: EvalOutput) -> Iterator[Table]:
    """Yield the tables of a report; those without a figure are left out."""
    cells = [cell for cell in out.cells if cell.questions]
    yield Table(
        title="Answers",
        columns=(*_WAY, "questions", "right", "refused", "wrong", "undecided", "failed"),
        rows=tuple(_answers(cell) for cell in cells),
    )
    evidence = tuple(row for cell in cells if set((row := _evidence(cell))[len(_WAY) :]) != {NONE})
    if evidence:
        yield Table(title="Evidence", columns=(*_WAY, *_EVIDENCE), rows=evidence)
    yield Table(
        title="Cost and time", columns=(*_WAY, *_COST), rows=tuple(_cost(cell) for cell in cells)
    )
    names = sorted({name for cell in cells for name in cell.strategies})
    yield Table(
        title="Strategies that answered",
        columns=(*_WAY, *names),
        rows=tuple(
            (*_way(c), *(f"{c.strategies.get(name, 0):,}" for name in names)) for c in cells
        ),
    )
    if out.differences:
        yield Table(
            title="Paired differences",
            columns=(*_WAY, "minus", "questions", "right", "refused", "wrong", "gained", "lost", "tokens", "$ a question"),
            rows=tuple(map(_difference, out.differences)),
            names=4,
        )  # fmt: skip


def _way(cell: CellOutput) -> tuple[str, str, str]:
    return cell.suite, cell.policy, cell.model


def _answers(cell: CellOutput) -> tuple[str, ...]:
    shares = map(percent, (cell.accuracy, cell.refused, cell.wrong, cell.undecided))
    return (*_way(cell), f"{cell.questions:,}", *shares, f"{cell.outcomes[Outcome.FAILED]:,}")


def _evidence(cell: CellOutput) -> tuple[str, ...]:
    shares = (cell.citation_precision, cell.citation_recall, cell.retrieval_recall, cell.supported)
    support = cell.support
    counts = NONE
    if support is not None:
        named = {
            "supported": support.supported,
            "unclear": support.unclear,
            "unsupported": support.unsupported + support.contradicted,
            "removed": support.removed,
        }
        counts = ", ".join(f"{count:,} {name}" for name, count in named.items() if count) or NONE
    return (*_way(cell), *map(percent, shares), counts)


def _cost(cell: CellOutput) -> tuple[str, ...]:
    unknown = f" ({cell.unknown_costs:,} unknown)" if cell.unknown_costs else ""
    return (
        *_way(cell),
        number(cell.calls, ".2f"),
        number(cell.tokens, ",.0f"),
        number(cell.cost_usd, ".6f") + unknown,
        number(cell.cost_per_right_usd, ".6f"),
        NONE if cell.seconds_p50 is None else f"{cell.seconds_p50:.2f}",
        NONE if cell.seconds_p95 is None else f"{cell.seconds_p95:.2f}",
    )


def _difference(difference: DifferenceMeasured) -> tuple[str, ...]:
    before = f"{difference.against_policy}, {difference.against_model}"
    if difference.against is not None:
        before += f" in {difference.against}"
    return (
        difference.suite,
        difference.policy,
        difference.model,
        before,
        f"{difference.questions:,}",
        *(points(one) for one in (difference.accuracy, difference.refused, difference.wrong)),
        f"{difference.gained:,}",
        f"{difference.lost:,}",
        number(difference.tokens, "+,.0f"),
        number(difference.cost_usd, "+.6f"),
    )


def percent(found: Measured | None) -> str:
    """Return a share with its interval, in percent."""
    if found is None:
        return NONE
    return f"{100 * found.mean:.1f} % [{100 * found.low:.1f}, {100 * found.high:.1f}]"


def points(found: Measured) -> str:
    """Return a difference of shares with its interval, in percentage points."""
    return f"{100 * found.mean:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"


def number(found: Measured | None, form: str) -> str:
    """Return a mean with its interval."""
    if found is None:
        return NONE
    if found.low == found.high == found.mean == 0:
        return "0"
    return f"{found.mean:{form}} [{found.low:{form}}, {found.high:{form}}]"


def title(cells: Sequence[CellOutput]) -> str:
    """Return the title of a report."""
    suites = list(dict.fromkeys(cell.suite for cell in cells))
    return f"Evaluation: {', '.join(suites)}"
