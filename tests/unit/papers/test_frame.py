"""The frame of the papers' suites: resuming, paying once, the report, and what it says of its readers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from evals.papers.__main__ import main
from evals.papers.run import Payment
from evals.papers.suite import Answered, Asked, Item, Suite, Values
from evals.papers.table import SUITES
from orchestrator.evaluation.simulation import profiles
from posology.errors import InputError, PosologyError
from posology.testing import Reply, Status, StubProvider
from posology.testing.provider.echo import echo
from posology.types import Usage
from tests.unit.papers.tiny import Tiny, run_in

ROOT = Path(__file__).resolve().parents[3]
MODEL = "openai:gpt-4o-mini"


def results(folder: Path) -> list[dict[str, object]]:
    lines = (folder / "run" / "rows.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if '"row":"result"' in line]


def echoing(latency: float = 0.0) -> Reply:
    return Reply(text=echo, usage=Usage(input=800, output=300), latency=latency)


def prompts(stub: StubProvider) -> Counter[str]:
    return Counter(request.json["messages"][-1]["content"] for request in stub.requests)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("POSOLOGY_ATTEMPTS", "1")
    return monkeypatch


def test_the_report_has_the_papers_figures_and_says_what_is_a_simulation(tmp_path: Path) -> None:
    text = run_in(tmp_path, Tiny(), "strong", "weak")
    assert (tmp_path / "run" / "report.md").read_text(encoding="utf-8") == text
    assert "**Simulation.**" in text
    assert "- `strong`: a simulation, no language model" in text
    assert "Fitted to: curve and reading of Mixtral-7x8b" in text
    rows = [line for line in text.splitlines() if line.startswith("| direct | answered | 0.500 |")]
    # weak follows another model than this figure's
    assert len(rows) == 1
    assert rows[0].endswith("| fitted |")
    parted = [line for line in text.splitlines() if line.startswith("| parted | answered |")]
    assert [line.split(" | ")[4] for line in parted] == ["strong", "weak"]
    assert all(line.endswith("| predicted |") for line in parted)
    assert "Brackets: 95 % intervals" in text
    assert "It is no experiment." in text


def test_all_profiles_are_asked_by_default(tmp_path: Path) -> None:
    run_in(tmp_path, Tiny())
    assert {row["reader"] for row in results(tmp_path)} == set(profiles())


def test_a_second_run_repeats_nothing_and_more_questions_are_added(tmp_path: Path) -> None:
    first, second, third = Tiny(), Tiny(), Tiny()
    text = run_in(tmp_path, first, "strong", questions=2)
    before = (tmp_path / "run" / "rows.jsonl").read_bytes()
    assert run_in(tmp_path, second, "strong", questions=2) == text
    assert (tmp_path / "run" / "rows.jsonl").read_bytes() == before
    assert (len(first.seen), second.seen) == (4, [])
    run_in(tmp_path, third, "strong", questions=3)
    assert third.seen == ["q2 direct", "q2 parted"]


class _Stops(Tiny):
    """Fails at an item."""

    def graded(self, item: Item, asked: Asked, answered: Answered) -> Values:
        if (item.question, item.arm) == ("q1", "parted"):
            raise RuntimeError("stopped")
        return super().graded(item, asked, answered)


def test_an_interrupted_run_reports_what_it_has_and_goes_on(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="stopped"):
        run_in(tmp_path, _Stops(), "strong")
    report = (tmp_path / "run" / "report.md").read_text(encoding="utf-8")
    assert "**Incomplete:** 3 rows are missing" in report
    rows = tmp_path / "run" / "rows.jsonl"
    # as a process leaves it that was killed while it wrote
    rows.write_bytes(rows.read_bytes() + b'{"row":"result","key":"half')
    again = Tiny()
    assert "Incomplete" not in run_in(tmp_path, again, "strong")
    assert again.seen == ["q1 parted", "q2 direct", "q2 parted"]
    assert len(results(tmp_path)) == 6


def test_rows_of_other_data_are_refused(tmp_path: Path) -> None:
    run_in(tmp_path, Tiny(), "strong", questions=1)
    rows = tmp_path / "run" / "rows.jsonl"
    rows.write_text(rows.read_text().replace('"seed":0', '"seed":1'))
    with pytest.raises(InputError, match="have seed 1, and this run has 0"):
        run_in(tmp_path, Tiny(), "strong", questions=1)


def test_missing_data_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = next(iter(SUITES))
    status = main([name, "--data", str(tmp_path), "--out", str(tmp_path / "out")])
    assert status == 1
    assert f"{tmp_path} has no {SUITES[name].files[0]}. Pass --data" in capsys.readouterr().err


def test_suites_are_listed_with_paper_and_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(SUITES)
    assert lines[0].startswith(next(iter(SUITES)))


@pytest.mark.parametrize("suite", SUITES.values(), ids=lambda suite: suite.name)
def test_every_suite_names_its_measures_and_what_was_fitted(suite: Suite) -> None:
    for figure in suite.published:
        assert figure.measure in suite.measures
        assert figure.fitted <= set(profiles())
        assert figure.profiles is None or figure.profiles <= set(profiles())
    assert suite.files
    assert suite.questions > 0


def test_a_model_with_a_price_needs_a_cap_and_a_dry_run_calls_nothing(
    tmp_path: Path, served: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with StubProvider(lambda _: echoing()) as stub:
        served.setenv("OPENAI_BASE_URL", stub.openai_url)
        with pytest.raises(InputError, match="--max-cost"):
            run_in(tmp_path, Tiny(), MODEL)
        assert run_in(tmp_path, Tiny(), MODEL, payment=Payment(dry=True)) == ""
        assert not stub.requests
    # three direct calls, and three times two partitions and a reduction
    assert "At most 12 calls" in capsys.readouterr().err


def test_a_model_is_paid_through_the_budget_and_never_twice(
    tmp_path: Path, served: pytest.MonkeyPatch
) -> None:
    failing = iter([False] * 5 + [True] + [False] * 20)
    with StubProvider(lambda _: Status(code=401) if next(failing) else echoing()) as stub:
        served.setenv("OPENAI_BASE_URL", stub.openai_url)
        # an answer without one of its partitions is none of the experiment's
        first = run_in(tmp_path, Tiny(), MODEL, payment=Payment(cap=Decimal(1)))
        assert "**Incomplete:** 1 rows are missing" in first
        text = run_in(tmp_path, Tiny(), MODEL, payment=Payment(cap=Decimal(1)))
    assert "Incomplete" not in text
    assert f"- `{MODEL}`: a language model" in text
    assert "Simulation" not in text
    # but for the one that failed, and the reduction of what was left
    assert sum(times - 1 for times in prompts(stub).values()) == 1
    assert len(prompts(stub)) <= 13
    assert "| measured |" in text


def test_a_cap_ends_the_run(tmp_path: Path, served: pytest.MonkeyPatch) -> None:
    with StubProvider(lambda _: echoing()) as stub:
        served.setenv("OPENAI_BASE_URL", stub.openai_url)
        with pytest.raises(PosologyError):
            run_in(tmp_path, Tiny(), MODEL, payment=Payment(cap=Decimal("0.0005")))
        sent = len(stub.requests)
        assert sent < 12


@pytest.mark.slow
def test_a_killed_run_goes_on_and_pays_for_no_call_twice(
    tmp_path: Path, served: pytest.MonkeyPatch
) -> None:
    with StubProvider(lambda _: echoing(latency=0.05)) as stub:
        served.setenv("OPENAI_BASE_URL", stub.openai_url)
        rows = tmp_path / "run" / "rows.jsonl"
        command = [sys.executable, "-m", "tests.unit.papers.tiny", str(tmp_path), MODEL]
        with subprocess.Popen(command, cwd=ROOT) as process:
            deadline = time.monotonic() + 400
            while not (rows.exists() and rows.read_bytes().count(b'"row":"result"') >= 2):
                assert time.monotonic() < deadline, "there were no two rows in 400 s"
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
        kept = len(results(tmp_path))
        again = Tiny()
        run_in(tmp_path, again, MODEL, payment=Payment(cap=Decimal(1)))
    assert len(again.seen) == 6 - kept
    # calls in flight when it was killed: their replies never arrived
    assert sum(times > 1 for times in prompts(stub).values()) <= 2
