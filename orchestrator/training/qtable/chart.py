"""Picture of a Q-table (PNG)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from orchestrator.training.qtable.description import describe, percent
from posology.errors import BadFile, ConfigurationError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from orchestrator.training.forms import QTableOutput
    from policies.qtable import QTable

_WIDTH, _HEIGHT, _ROW = 11.0, 3.2, 0.34


def draw(table: QTable, path: Path) -> None:
    """Draw values with the chosen actions, visits, and how often each action is chosen.

    Args:
        table: to draw.
        path: file to write.

    Raises:
        ConfigurationError: matplotlib is not installed.
        BadFile: the file cannot be written.
    """
    figure = _figure()
    out = describe(table)
    figure.set_size_inches(_WIDTH, _HEIGHT + 2 * _ROW * len(out.states))
    values, visits, histogram = figure.subplots(
        3, 1, height_ratios=[len(out.states) + 1, len(out.states) + 1, 5]
    )
    _grid(values, table, out, table.q, "{:.2f}", "Mean reward (frame: chosen action)")
    _grid(visits, table, out, table.visits.astype(float), "{:.0f}", "Number of rewards")
    _bars(histogram, out)
    figure.suptitle(
        f"Q-table {out.digest}: {out.model}, α = {out.alpha:g}, {out.kind}, k = {out.k}"
    )
    try:
        figure.savefig(path, format="png", dpi=120)
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(path)) from None


def _figure() -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigurationError(
            "matplotlib is not installed. Install it with: pip install posology[plots]"
        ) from None
    # pyplot would keep global state
    return Figure(layout="constrained")


def _grid(
    axes: Axes,
    table: QTable,
    out: QTableOutput,
    numbers: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    form: str,
    title: str,
) -> None:
    known = np.ma.masked_invalid(numbers)
    axes.imshow(known, aspect="auto", cmap="viridis")
    middle = (float(known.min()) + float(known.max())) / 2 if known.count() else 0.0
    for state in out.states:
        for column, keep in enumerate(table.actions):
            number = float(numbers[state.state, column])
            dark = np.isnan(number) or number < middle
            axes.text(
                column,
                state.state,
                "–" if np.isnan(number) else form.format(number),
                ha="center",
                va="center",
                fontsize=8,
                color="white" if dark and not np.isnan(number) else "black",
            )
            if keep == state.keep and not state.fallback:
                from matplotlib.patches import Rectangle

                frame = (column - 0.48, state.state - 0.46)
                axes.add_patch(Rectangle(frame, 0.96, 0.92, fill=False, edgecolor="red", lw=2))
    names = [
        f"{state.state}{' (fallback)' if state.fallback else ''} · {state.population:.0%}"
        for state in out.states
    ]
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_xticks(range(len(table.actions)), [percent(keep) for keep in table.actions])
    axes.set_ylabel("state · share")
    axes.set_title(title, fontsize=10)


def _bars(axes: Axes, out: QTableOutput) -> None:
    names = [percent(action.keep) for action in out.actions]
    axes.bar(names, [100 * action.population for action in out.actions], color="tab:green")
    axes.set_ylabel("% of questions")
    axes.set_xlabel("sentences kept whole")
    axes.set_title("How often each action is chosen", fontsize=10)
