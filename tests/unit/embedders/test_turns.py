"""Blocks that are measured in turns: none twice, and none by one backend alone for long."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from evals.encoding_turns import Clock, Cost, Turns, same_machine, written

NAMES = ("a", "b")
SIZES = (4, 4, 2)


class Killed(BaseException):
    """The run ends here."""


class Work:
    """Takes some seconds for each passage, half of them by ``b``, and is killed at one of the blocks."""

    def __init__(self, kill_at: int | None = None, *, seconds: float = 1.0) -> None:
        self._seconds = seconds
        self.done: list[tuple[str, int]] = []
        self._kill_at = kill_at

    def __call__(self, name: str, block: int) -> Cost:
        if len(self.done) == self._kill_at:
            raise Killed
        self.done.append((name, block))
        wall = SIZES[block] * self._seconds * (1.0 if name == "a" else 0.5)
        return Cost(items=SIZES[block], wall=wall, processor=1.0, others=0.0)


def test_who_comes_first_changes(tmp_path: Path) -> None:
    work = Work()
    Turns("s", NAMES, SIZES, tmp_path).run(work)
    assert work.done == [("a", 0), ("b", 0), ("b", 1), ("a", 1), ("a", 2), ("b", 2)]


@pytest.mark.parametrize("kill_at", range(6))
def test_a_run_that_is_killed_is_gone_on_with(
    tmp_path: Path, kill_at: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Killed):
        Turns("s", NAMES, SIZES, tmp_path).run(Work(kill_at))
    # it was killed while it wrote, too
    (tmp_path / "draft-s-b-0002.json").write_text("{")
    work = Work()
    turns = Turns("s", NAMES, SIZES, tmp_path)
    turns.run(work)
    assert len(work.done) == 6 - kill_at
    again = Turns("s", NAMES, SIZES, tmp_path)
    again.run(Work(0))
    assert again.costs == turns.costs
    capsys.readouterr()
    again.report(20)
    first, second, ratios = capsys.readouterr().out.splitlines()
    assert "10 passages in 10.0 s: 1.00 a second" in first
    assert "10 passages in 5.0 s: 2.00 a second" in second
    assert "0.2 minutes for 20 (extrapolated)" in second
    assert ratios.strip() == "b is 2.00 times as fast as a, 1.00 by processor time"


def test_a_longer_run_goes_on_with_a_shorter_one(tmp_path: Path) -> None:
    Turns("s", NAMES, (*SIZES[:1], 1), tmp_path).run(
        lambda _, block: Cost(items=(4, 1)[block], wall=1.0, processor=1.0, others=None)
    )
    work = Work()
    Turns("s", NAMES, SIZES, tmp_path).run(work)
    assert sorted(work.done) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


def test_what_is_left_is_told_from_what_was_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Turns("s", NAMES, SIZES, tmp_path).run(Work(seconds=60))
    left = [line.rpartition("left ")[2] for line in capsys.readouterr().err.splitlines()]
    assert left == ["unknown yet", "9.0 min", "7.0 min", "3.0 min", "1.0 min", "0.0 min"]


def test_blocks_that_only_one_is_to_do_do_not_count_in_the_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = Work()
    turns = Turns("s", NAMES, SIZES, tmp_path)
    turns.run(work, wanted=lambda name, block: name == "b" or block == 2)
    assert sorted(work.done) == [("a", 2), ("b", 0), ("b", 1), ("b", 2)]
    turns.report(10)
    out = capsys.readouterr().out.splitlines()
    assert "2 passages in 2.0 s" in out[0]
    assert "2 passages in 1.0 s" in out[1]


def test_a_clock_counts_this_process_and_others_apart() -> None:
    clock = Clock()
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
    worked = clock.cost(1)
    assert worked.processor >= 0.1
    assert worked.wall >= 0.1
    assert worked.others is None or worked.others >= 0
    clock = Clock()
    time.sleep(0.1)
    slept = clock.cost(1)
    assert slept.wall >= 0.1
    assert slept.processor < 0.1


def test_figures_of_another_machine_are_not_mixed_in(tmp_path: Path) -> None:
    same_machine(tmp_path / "w", {"a": "torch"})
    same_machine(tmp_path / "w", {"a": "torch"})
    with pytest.raises(SystemExit, match="--work"):
        same_machine(tmp_path / "w", {"a": "torch", "b": "onnx"})
    note = tmp_path / "w" / "machine.json"
    note.write_text(json.dumps({**json.loads(note.read_text()), "cores": 4_096}))
    with pytest.raises(SystemExit, match="--work"):
        same_machine(tmp_path / "w", {"a": "torch"})


def test_a_file_has_its_name_when_it_is_whole(tmp_path: Path) -> None:
    def half() -> None:
        with written(tmp_path / "f") as draft:
            draft.write_text("ha")
            raise Killed

    with pytest.raises(Killed):
        half()
    assert not (tmp_path / "f").exists()
    with written(tmp_path / "f") as draft:
        draft.write_text("half and half")
    assert (tmp_path / "f").read_text() == "half and half"
