"""The report of a run, in Markdown: the paper's figures beside ours, with intervals, and what the readers are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from evals.papers.readers import Reader
from evals.papers.rows import Begun, Result
from evals.papers.suite import Published, Suite, by_arm
from evals.pooled import interval

#: measures that every answer has
EFFORT = {
    "calls": "model calls",
    "tokens": "tokens of all calls, in and out",
    "usd": "dollars",
}
#: what a figure of ours is to one of the paper
FITTED, PREDICTED, MEASURED = "fitted", "predicted", "measured"
_SIMULATION = (
    "**Simulation.** The readers called so are no language models. Their parameters were fitted to published figures. Coming "
    f"near a figure that is marked *{FITTED}* shows nothing; one marked *{PREDICTED}* is what follows if models behave as "
    "assumed (docs/concepts/simulated-models.md)."
)


def report(
    suite: Suite,
    readers: Sequence[Reader],
    rows: Sequence[Result],
    *,
    begun: Begun,
    missing: int,
) -> str:
    """Return the report of a suite.

    Args:
        suite: the experiment.
        readers: those that were asked; empty: it needs none.
        rows: of this run's items.
        begun: the data and the seed.
        missing: items without a row.
    """
    parts = [
        _head(suite, readers, rows, begun, missing),
        _compared(suite, readers, rows),
        _arms(suite, rows),
        suite.tables(rows),
        _listed("Differences from the paper", suite.differences),
        _listed("Measures", [f"{k}: {v}" for k, v in _measures(suite).items()]),
    ]
    return "\n".join(chain.from_iterable(parts)) + "\n"


def _head(
    suite: Suite, readers: Sequence[Reader], rows: Sequence[Result], begun: Begun, missing: int
) -> Iterator[str]:
    yield f"# {suite.name}: {suite.title}"
    yield ""
    questions = len({row.question for row in rows})
    yield (
        f"{suite.paper}, {suite.place}. {questions} questions, {len(rows):,} rows, seed {begun.seed}, data "
        f"{begun.data}, Posology {begun.version}, begun {begun.started}. Brackets: 95 % intervals, bootstrap over questions."
    )
    if missing:
        yield ""
        yield f"**Incomplete:** {missing:,} rows are missing. The same command makes them."
    yield ""
    if any(one.profile for one in readers):
        yield _SIMULATION
        yield ""
    if not readers:
        yield "No reader is asked."
    yield from (f"- `{one.name}`: {one.statement}" for one in readers)


def _compared(suite: Suite, readers: Sequence[Reader], rows: Sequence[Result]) -> Iterator[str]:
    if not suite.published:
        return
    yield from ("", "## The paper's figures beside ours", "")
    yield "| arm | measure | the paper | with | reader | here | basis |"
    yield "| --- | --- | ---: | --- | --- | ---: | --- |"
    found = by_arm(rows)
    for figure in suite.published:
        for name, profile in [(one.name, one.profile) for one in readers] or [("", None)]:
            if profile and figure.profiles is not None and profile not in figure.profiles:
                continue
            values = _values(found.get((name, figure.arm), []), figure.measure)
            yield (
                f"| {figure.arm} | {figure.measure} | {number(figure.value)} | {figure.of}, {figure.source} | {name or '–'} "
                f"| {with_interval(values)} | {_basis(figure, profile)} |"
            )


def _basis(figure: Published, profile: str | None) -> str:
    if profile is None:
        return MEASURED
    return FITTED if profile in figure.fitted else PREDICTED


def _arms(suite: Suite, rows: Sequence[Result]) -> Iterator[str]:
    yield from ("", "## All arms", "")
    shown = [name for name in _measures(suite) if any(name in row.values for row in rows)]
    yield f"| reader | arm | n | {' | '.join(shown)} |"
    yield f"| --- | --- | ---: |{' ---: |' * len(shown)}"
    for (reader, arm), of in by_arm(rows).items():
        cells = " | ".join(with_interval(_values(of, name)) for name in shown)
        yield f"| {reader or '–'} | {arm} | {len(of)} | {cells} |"


def _measures(suite: Suite) -> dict[str, str]:
    return {**suite.measures, **(EFFORT if suite.reads else {})}


def _values(rows: Sequence[Result], measure: str) -> list[float]:
    found = [row.values.get(measure) for row in rows]
    return [one for one in found if one is not None]


def _listed(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield from ("", f"## {title}", "")
        yield from (f"- {line}" for line in lines)


def with_interval(values: Sequence[float]) -> str:
    """Return a mean with its 95 % interval; a dash if there are no values."""
    if not values:
        return "–"
    low, high = interval(values)
    return f"{number(float(np.mean(values)))} [{number(low)}, {number(high)}]"


def number(value: float) -> str:
    """Return a number with three decimals, or two digits if it is smaller, or whole if it is ten or more."""
    if abs(value) >= 10:
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) >= 0.01 or not value else f"{value:.2g}"
