"""Picture of a Q-table: its values as shades of a table's cells."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.training.forms import QActionOutput, QStateOutput, QTableOutput
from orchestrator.training.qtable.description import describe, percent
from policies.qtable import QTable

#: shades, from the least value of a table to the greatest
SHADES = 8
#: states that a page shows
_STATES = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """An action of a state."""

    #: mean reward; ``None``: never tried
    value: float | None
    visits: int
    #: from 0, or -1: never tried
    shade: int
    chosen: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A state."""

    state: QStateOutput
    cells: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """How often an action is chosen, in percent of the most frequent one."""

    name: str
    action: QActionOutput
    width: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Heat:
    """A Q-table with its picture."""

    out: QTableOutput
    #: shares kept, in percent
    actions: tuple[str, ...]
    rows: tuple[Row, ...]
    bars: tuple[Bar, ...]


def heat(table: QTable, differs: tuple[str, ...]) -> Heat:
    """Return the picture of a Q-table.

    Args:
        table: the Q-table.
        differs: its differences from the settings.
    """
    out = describe(table, differs)
    known = [value for state in out.states for value in state.values if value is not None]
    least, most = min(known, default=0.0), max(known, default=0.0)

    def shade(value: float | None) -> int:
        if value is None:
            return -1
        share = (value - least) / (most - least) if most > least else 0.0
        return min(int(share * SHADES), SHADES - 1)

    often = max((one.population for one in out.actions), default=0.0) or 1.0
    return Heat(
        out=out,
        actions=tuple(map(percent, table.actions)),
        rows=tuple(
            Row(
                state=state,
                cells=tuple(
                    Cell(
                        value=value,
                        visits=visits,
                        shade=shade(value),
                        chosen=keep == state.keep and not state.fallback,
                    )
                    for keep, value, visits in zip(
                        table.actions, state.values, state.visits, strict=True
                    )
                ),
            )
            for state in out.states[:_STATES]
        ),
        bars=tuple(
            Bar(name=percent(one.keep), action=one, width=round(100 * one.population / often, 2))
            for one in out.actions
        ),
    )
