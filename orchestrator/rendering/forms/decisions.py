"""Compared policies, priced doses and Q-tables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from orchestrator.question.decisions.forms import CompareOutput, DosePair, SideOutput
from orchestrator.rendering.forms.columns import Cell, Column, Kind, Table, Tone, share, table
from orchestrator.rendering.words import UNKNOWN, percent
from orchestrator.training.forms import QActionOutput, QStateOutput, QTableOutput
from orchestrator.training.qtable.description import percent as kept
from policies.affordable import describe
from posology.published.decisions import OfferOutput

#: shades, from the least value of a Q-table to the greatest
SHADES = 8


def _fits(offer: OfferOutput) -> Cell:
    if offer.fits:
        return Cell(text="fits", tone=Tone.GOOD)
    return Cell(text="over budget", tone=Tone.WARN)


def _state(state: QStateOutput) -> Cell:
    if state.fallback:
        return Cell(text=f"{state.state}", note="fallback", tone=Tone.WARN)
    return Cell(text=f"{state.state}")


SIDES: tuple[Column[SideOutput], ...] = (
    Column("policy", lambda side: side.policy),
    Column("declined", lambda side: side.declined, Kind.NUMBER),
    Column("calls", lambda side: side.calls, Kind.NUMBER),
    Column("tokens in", lambda side: side.input_tokens, Kind.NUMBER),
    Column("minimum", lambda side: side.low_usd, Kind.NUMBER),
    Column("expected", lambda side: side.expected_usd, Kind.NUMBER),
    Column("maximum", lambda side: side.worst_usd, Kind.NUMBER),
    Column("expected, differing", lambda side: side.differing_expected_usd, Kind.NUMBER),
)
OFFERS: tuple[Column[OfferOutput], ...] = (
    Column("dose", lambda offer: describe(offer.dose), Kind.WIDE),
    Column("maximum", lambda offer: offer.worst, Kind.NUMBER),
    Column("budget", _fits),
)


def pairs(out: CompareOutput, most: int | None = None) -> Table:
    """Return the pairs of doses of two policies, most questions first."""
    columns: tuple[Column[DosePair], ...] = (
        Column("questions", lambda pair: pair.questions, Kind.NUMBER),
        Column(out.first.policy, lambda pair: pair.first, Kind.WIDE),
        Column(out.second.policy, lambda pair: pair.second, Kind.WIDE),
    )
    return table(
        columns,
        out.doses[:most],
        tone=lambda pair: Tone.SOFT if pair.first == pair.second else None,
    )


def q_values(out: QTableOutput, actions: Sequence[float], most: int | None = None) -> Table:
    """Return the mean reward of each action in each state, with its visits; ``*`` marks the chosen action.

    Args:
        out: the Q-table.
        actions: shares kept, as in ``values`` of its states.
        most: maximum states; ``None``: all.
    """
    known = [value for state in out.states for value in state.values if value is not None]
    least, span = min(known, default=0.0), max(known, default=0.0) - min(known, default=0.0)

    def cell(place: int, state: QStateOutput) -> Cell:
        value, visits = state.values[place], f"{state.visits[place]:,}"
        if value is None:
            return Cell(text=UNKNOWN, note=visits, shade=-1)
        chosen = actions[place] == state.keep and not state.fallback
        return Cell(
            text=f"{value:.2f}{'*' if chosen else ''}",
            note=visits,
            tone=Tone.GOOD if chosen else None,
            shade=min(int((value - least) / span * SHADES), SHADES - 1) if span else 0,
        )

    columns: tuple[Column[QStateOutput], ...] = (
        Column("state", _state),
        *(
            Column(kept(action), partial(cell, place), Kind.NUMBER)
            for place, action in enumerate(actions)
        ),
        Column("share", lambda state: percent(state.population), Kind.NUMBER),
    )
    return table(columns, out.states[:most])


def q_legend(out: QTableOutput) -> str:
    """Return the meaning of the values of a Q-table."""
    text = "Mean reward of each share kept, with its number of rewards. *: the chosen share."
    if any(state.fallback for state in out.states):
        text += f" fallback: too few rewards, so {kept(out.fallback)} is kept."
    return text


def q_actions(out: QTableOutput) -> Table:
    """Return how often each action is chosen."""
    most = max((action.population for action in out.actions), default=0.0) or 1.0
    columns: tuple[Column[QActionOutput], ...] = (
        Column("keep", lambda action: kept(action.keep), Kind.NUMBER),
        Column("states", lambda action: action.states, Kind.NUMBER),
        Column("share", lambda action: percent(action.population), Kind.NUMBER),
        Column("questions", lambda action: share(action.population / most), Kind.BAR),
    )
    return table(columns, out.actions)
