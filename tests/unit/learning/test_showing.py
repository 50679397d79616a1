from __future__ import annotations

import re
import sys
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from orchestrator.cli.policy.table_view import show_table
from orchestrator.training.qtable.chart import draw
from orchestrator.training.qtable.description import describe
from policies.qtable import ACTIONS, QTable
from posology.errors import BadFile, ConfigurationError
from tests.unit.policies.tables import table


def shown(of: QTable) -> str:
    out = StringIO()
    show_table(Console(file=out, width=80), of)
    return out.getvalue()


def learned() -> QTable:
    """Two states that chose 10 % and 100 %, and one of which too little is known."""
    q = np.zeros((3, len(ACTIONS)))
    q[0, 2] = 0.5
    q[1, -1] = 0.25
    q[2, 4] = 0.75
    visits = np.full((3, len(ACTIONS)), 10)
    visits[1], visits[2] = 30, 4
    return table(q=q, visits=visits, fallback=0.4)


def test_the_published_form_says_what_is_chosen_and_how_often() -> None:
    out = describe(learned())
    assert [(state.keep, state.fallback) for state in out.states] == [
        (0.1, False),
        (1.0, False),
        (0.4, True),
    ]
    assert [state.population for state in out.states] == pytest.approx([10 / 44, 30 / 44, 4 / 44])
    assert out.rewards == 440
    chosen = {action.keep: (action.states, action.population) for action in out.actions}
    assert {keep: states for keep, (states, _) in chosen.items() if states} == {
        0.1: 1,
        0.4: 1,
        1: 1,
    }
    assert chosen[0.1][1] == pytest.approx(10 / 44)
    assert chosen[0.4][1] == pytest.approx(4 / 44)
    assert chosen[0.0][1] == 0


def test_a_default_that_is_no_action_is_counted_too() -> None:
    out = describe(table(visits=0, fallback=0.5))
    assert [(a.keep, a.states) for a in out.actions if a.states] == [(0.5, 3)]
    assert out.rewards == 0


def test_a_terminal_shows_the_chosen_actions_and_all_that_the_table_is_of() -> None:
    of = learned()
    text = shown(of)
    for said in (of.digest, of.model, of.embedder, of.data[:16], "0.5", "leancontext"):
        assert said in text
    rows = {line.split()[0]: line for line in text.splitlines() if line[:1].isdigit()}
    assert "0.50*" in rows["0"]
    assert rows["1"].split()[-2] == "0.25*"
    assert "fallback" in rows["2"]
    assert "*" not in rows["2"]
    assert "68%" in rows["1"]
    assert all(len(line) <= 80 for line in text.splitlines() if line[:1].isdigit())


def test_what_it_is_not_of_is_told() -> None:
    out = StringIO()
    show_table(Console(file=out, width=80), learned(), ("it learned from something else",))
    assert "it learned from something else" in out.getvalue()
    assert describe(learned(), ("it did",)).differs == ("it did",)


def test_an_untrained_table_is_shown_without_values() -> None:
    text = shown(table(visits=0))
    assert "–" in text
    assert not re.search(r"\d\*", text)


def test_what_a_file_says_cannot_command_the_terminal() -> None:
    assert "\x1b[31m" not in shown(table(model="evil\x1b[31m:model"))


@pytest.mark.slow
def test_a_picture_is_drawn(tmp_path: Path) -> None:
    draw(learned(), tmp_path / "table.png")
    assert (tmp_path / "table.png").read_bytes().startswith(b"\x89PNG")
    draw(table(visits=0), tmp_path / "untrained.png")
    assert (tmp_path / "untrained.png").stat().st_size > 1_000


def test_a_picture_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadFile):
        draw(table(), tmp_path / "none" / "table.png")


def test_without_matplotlib_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ConfigurationError, match=r"posology\[plots\]"):
        draw(table(), tmp_path / "table.png")
