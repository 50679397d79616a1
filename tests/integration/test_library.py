"""Posology in a program: asked, capped, in batches, with and without an event loop."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from orchestrator.ingest.ingest import run_ingest
from orchestrator.ingest.writer import Target
from orchestrator.settings import load_settings
from posology import AsyncPosology, Posology
from posology.corpus import sample
from posology.errors import (
    BudgetError,
    ConfigurationError,
    IndexMissing,
    InvalidQuery,
    UnknownModel,
)
from posology.published.answers import Status
from posology.testing import Reply, StubProvider
from posology.testing.provider.echo import echo
from posology.types import JobState, Usage

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "library.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
QUESTION = "Does aspirin reduce the risk of preeclampsia?"
MODEL = "openai:gpt-6-luna"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("library") / "index"
    with sample.notes_file() as notes:
        run_ingest([notes], load_settings(), Target(place=place))
    return place


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No stack runs, and no Redis is configured."""
    monkeypatch.setenv("POSOLOGY_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("POSOLOGY_REDIS_URL", raising=False)


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubProvider]:
    usage = Usage(input=2_000, output=100)
    with StubProvider(lambda _: Reply(text=echo, usage=usage)) as stub:
        monkeypatch.setenv("OPENAI_BASE_URL", stub.openai_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-any")
        yield stub


@pytest.mark.parametrize("example", EXAMPLES, ids=["ask", "batch", "async"])
def test_the_documented_examples_run(
    example: str, index: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(index.parent)
    exec(compile(example, "library.md", "exec"), {})
    printed = capsys.readouterr().out
    if "rows = " in example:
        assert re.fullmatch(r"aspirin answered\nempty InvalidQuery\nk\n", printed)
    elif "anyio" in example:
        assert printed == "answered\n"
    else:
        assert printed.count("['") == 1, printed


def test_an_answer_with_a_budget_takes_six_lines_at_most() -> None:
    assert len([line for line in EXAMPLES[0].splitlines() if line]) <= 6


def test_a_path_is_accepted_and_the_index_is_found(index: Path) -> None:
    with Posology(index) as qa:
        found = qa.search("aspirin", k=3, filters={"since": 1990})
        assert len(found.hits) <= 3
        assert qa.ask(QUESTION, k=4).status is Status.ANSWERED
        assert qa.charged_usd == 0
    with pytest.raises(ConfigurationError, match="not open"):
        qa.ask(QUESTION)


def test_a_cap_holds_and_what_was_charged_is_known(index: Path, provider: StubProvider) -> None:
    with Posology(index, model=MODEL) as qa:
        found = qa.ask(QUESTION, max_cost_usd=0.05)
        assert found.model == MODEL
        assert found.spending.charged_usd == qa.charged_usd > 0
        assert {one.effort for one in found.spending.attempts} <= {"low", "none"}
        assert found.spending.attempts[-1].effort == "low"
        sent = len(provider.requests)
        assert sent
        with pytest.raises(BudgetError):
            qa.ask(QUESTION, max_cost_usd="0.000001")
        assert len(provider.requests) == sent
        assert qa.charged_usd == found.spending.charged_usd


def test_one_cap_holds_for_all_rows_of_a_batch(index: Path, provider: StubProvider) -> None:
    rows = [{"id": n, "question": f"{QUESTION} ({n})"} for n in range(12)]
    with Posology(index, model=MODEL) as qa:
        (attempt,) = qa.ask(QUESTION, k=2, strategy="direct").spending.attempts
        before = qa.charged_usd
        # the first rows find room, and the last ones do not
        cap = attempt.reserved + 4 * attempt.charged
        found = qa.batch(rows, max_cost_usd=cap, k=2, strategy="direct")
        spent = qa.charged_usd - before
    assert [row.row for row in found] == list(range(12))
    assert [row.id for row in found] == list(range(12))
    assert spent <= cap
    states = {row.state for row in found}
    assert states == {JobState.SUCCEEDED, JobState.FAILED}
    for row in found:
        assert (row.result is None) != (row.error is None)
    assert spent == sum(
        (row.result.spending.charged_usd for row in found if row.result), Decimal(0)
    )


def test_rows_come_from_a_file_and_keep_their_own_caps(
    index: Path, provider: StubProvider, tmp_path: Path
) -> None:
    file = tmp_path / "rows.jsonl"
    rows = [
        {"question": QUESTION, "max_cost_usd": "0.05"},
        {"question": QUESTION, "max_cost_usd": "0.000001"},
        {"question": ""},
    ]
    file.write_text("\n".join(map(json.dumps, rows)) + "\n\n", encoding="utf-8")
    with Posology(index, model=MODEL) as qa:
        good, poor, empty = qa.batch(file)
        both, *_ = qa.batch(rows, max_cost_usd=1)
    assert (good.state, poor.state, empty.state) == (JobState.SUCCEEDED, JobState.FAILED, None)
    assert empty.error is not None
    assert empty.error.details["line"] == 3
    assert both.error is not None
    assert both.error.type == "InvalidQuery"


@pytest.mark.anyio
async def test_tasks_share_an_index(index: Path) -> None:
    import anyio

    done: list[Status] = []
    async with AsyncPosology(index) as qa, anyio.create_task_group() as group:

        async def ask() -> None:
            done.append((await qa.ask(QUESTION, k=2)).status)

        for _ in range(3):
            group.start_soon(ask)
    assert done == [Status.ANSWERED] * 3


def test_what_is_wrong_is_raised_at_once(tmp_path: Path, index: Path) -> None:
    with pytest.raises(IndexMissing):
        Posology(tmp_path / "none")
    with pytest.raises(UnknownModel):
        Posology(index, model="mistral:large")
    with Posology(index) as qa, pytest.raises(InvalidQuery, match="unknown field"):
        qa.ask(QUESTION, passages=3)


def test_both_have_the_same_methods() -> None:
    for name in ("ask", "batch", "search"):
        sync, other = (inspect.signature(getattr(kind, name)) for kind in (Posology, AsyncPosology))
        assert str(sync.parameters) == str(other.parameters)


def test_the_package_alone_imports_nothing_of_it() -> None:
    code = (
        "import posology, sys; assert posology.__version__; sys.exit('orchestrator' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    with pytest.raises(ImportError):
        from posology import Nothing  # noqa: F401
