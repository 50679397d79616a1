"""Content of a report, before it is Markdown or HTML: remarks and tables of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from orchestrator.evaluation.forms import (
    CellOutput,
    CostMeasured,
    DifferenceMeasured,
    EvalOutput,
    Measured,
    Outcome,
)
from orchestrator.evaluation.measures import DRAWS
from orchestrator.evaluation.simulated import is_simulated
from orchestrator.rendering.forms.columns import Column, Kind, Table, table
from orchestrator.rendering.words import UNKNOWN
from posology.published.answers import judged

#: where there is no figure
NONE = UNKNOWN
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


def percent(found: Measured | None) -> str:
    """Return a share with its interval, in percent."""
    if found is None:
        return NONE
    return f"{100 * found.mean:.1f} % [{100 * found.low:.1f}, {100 * found.high:.1f}]"


def points(found: Measured) -> str:
    """Return a difference of shares with its interval, in percentage points."""
    return f"{100 * found.mean:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"


def number(found: Measured | CostMeasured | None, form: str) -> str:
    """Return a mean with its interval."""
    if found is None:
        return NONE
    if found.low == found.high == found.mean == 0:
        return "0"
    high = "no upper end" if found.high is None else f"{found.high:{form}}"
    return f"{found.mean:{form}} [{found.low:{form}}, {high}]"


def _counts(cell: CellOutput) -> str | None:
    """Return the checked sentences by their support; ``None``: none was checked."""
    if cell.support is None:
        return None
    named = {
        "supported": cell.support.supported,
        "unclear": cell.support.unclear,
        "unsupported": cell.support.unsupported + cell.support.contradicted,
        "removed": cell.support.removed,
    }
    return ", ".join(f"{count:,} {name}" for name, count in named.items() if count) or None


def _paid(cell: CellOutput) -> str:
    unknown = f" ({cell.unknown_costs:,} unknown)" if cell.unknown_costs else ""
    return number(cell.cost_usd, ".6f") + unknown


def _seconds(found: float | None) -> str | None:
    return None if found is None else f"{found:.2f}"


def _answered(strategy: str, cell: CellOutput) -> int:
    return cell.strategies.get(strategy, 0)


def _before(found: DifferenceMeasured) -> str:
    before = f"{found.against_policy}, {found.against_model}"
    return before if found.against is None else f"{before} in {found.against}"


_WAY: tuple[Column[CellOutput | DifferenceMeasured], ...] = (
    Column("suite", lambda cell: cell.suite),
    Column("policy", lambda cell: cell.policy),
    Column("model", lambda cell: cell.model),
)
_ANSWERS: tuple[Column[CellOutput], ...] = (
    *_WAY,
    Column("questions", lambda cell: cell.questions, Kind.NUMBER),
    Column("right", lambda cell: percent(cell.accuracy), Kind.NUMBER),
    Column("refused", lambda cell: percent(cell.refused), Kind.NUMBER),
    Column("wrong", lambda cell: percent(cell.wrong), Kind.NUMBER),
    Column("undecided", lambda cell: percent(cell.undecided), Kind.NUMBER),
    Column("failed", lambda cell: cell.outcomes[Outcome.FAILED], Kind.NUMBER),
)
_EVIDENCE: tuple[Column[CellOutput], ...] = (
    *_WAY,
    Column("citation precision", lambda cell: percent(cell.citation_precision), Kind.NUMBER),
    Column("citation recall", lambda cell: percent(cell.citation_recall), Kind.NUMBER),
    Column("retrieval recall", lambda cell: percent(cell.retrieval_recall), Kind.NUMBER),
    Column("supported", lambda cell: percent(cell.supported), Kind.NUMBER),
    Column("sentences", _counts, Kind.NUMBER),
)
_COST: tuple[Column[CellOutput], ...] = (
    *_WAY,
    Column("calls", lambda cell: number(cell.calls, ".2f"), Kind.NUMBER),
    Column("tokens", lambda cell: number(cell.tokens, ",.0f"), Kind.NUMBER),
    Column("$ a question", _paid, Kind.NUMBER),
    Column("$ a right answer", lambda cell: number(cell.cost_per_right_usd, ".6f"), Kind.NUMBER),
    Column("s, median", lambda cell: _seconds(cell.seconds_p50), Kind.NUMBER),
    Column("s, 95 %", lambda cell: _seconds(cell.seconds_p95), Kind.NUMBER),
)
_DIFFERENCES: tuple[Column[DifferenceMeasured], ...] = (
    *_WAY,
    Column("minus", _before),
    Column("questions", lambda found: found.questions, Kind.NUMBER),
    Column("right", lambda found: points(found.accuracy), Kind.NUMBER),
    Column("refused", lambda found: points(found.refused), Kind.NUMBER),
    Column("wrong", lambda found: points(found.wrong), Kind.NUMBER),
    Column("gained", lambda found: found.gained, Kind.NUMBER),
    Column("lost", lambda found: found.lost, Kind.NUMBER),
    Column("tokens", lambda found: number(found.tokens, "+,.0f"), Kind.NUMBER),
    Column("$ a question", lambda found: number(found.cost_usd, "+.6f"), Kind.NUMBER),
)


def tables(out: EvalOutput) -> Iterator[Table]:
    """Yield the tables of a report; those without a figure are left out."""
    cells = [cell for cell in out.cells if cell.questions]
    yield table(_ANSWERS, cells, title="Answers")
    cited = table(_EVIDENCE, cells, title="Evidence")
    found = [one for one in cited.lines if {cell.text for cell in one.cells[len(_WAY) :]} != {NONE}]
    if found:
        yield replace(cited, lines=tuple(found))
    yield table(_COST, cells, title="Cost and time")
    chosen = [
        Column(name, partial(_answered, name), Kind.NUMBER)
        for name in sorted({name for cell in cells for name in cell.strategies})
    ]
    yield table((*_WAY, *chosen), cells, title="Strategies that answered")
    if out.differences:
        yield table(_DIFFERENCES, out.differences, title="Paired differences")


def title(cells: Sequence[CellOutput]) -> str:
    """Return the title of a report."""
    suites = list(dict.fromkeys(cell.suite for cell in cells))
    return f"Evaluation: {', '.join(suites)}"
