"""``posology policy train`` as a person meets it: a real index, a provider on a socket, a budget, and a kill."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import Result

from orchestrator.question import qtables
from orchestrator.training.forms import TrainOutput
from orchestrator.training.qtable.rows import read_run
from policies.qtable import ACTIONS
from posology.testing import Reply, StubProvider
from posology.testing.provider.batches.book import BatchBook
from posology.testing.provider.echo import echo
from posology.types import Usage
from tests.support.commands import Cli, command_line
from tests.support.indices import write_rows
from tests.support.paid_runs import MODEL, environment_of, ingest_six, kill_when

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "schema" / "train.json"
QUESTIONS: list[dict[str, Any] | str] = [
    {
        "question": "Does aspirin lower the risk of stroke?",
        "answer": "It lowered the risk of stroke.",
    },
    "{no json",
    {"question": "What was the dose of aspirin in adults?", "id": "b"},
    {"question": "Was bleeding seen?", "k": 2},
]


@pytest.fixture(scope="module")
def index(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ingest_six(tmp_path_factory.mktemp("index"), tiny_encoder)


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "q.jsonl", QUESTIONS)


@pytest.fixture
def environment(index: Path, tiny_encoder: Path) -> dict[str, str]:
    return environment_of(index, tiny_encoder)


@pytest.fixture
def cli(environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)
    return command_line(environment, "policy", "train", "--out", "t.json")


def published(result: Result) -> TrainOutput:
    assert result.exit_code in (0, 1), result.output
    jsonschema.validate(json.loads(result.stdout), json.loads(SCHEMA.read_text(encoding="utf-8")))
    return TrainOutput.model_validate_json(result.stdout)


def echoing(latency: float = 0.0) -> Reply:
    return Reply(text=echo, usage=Usage(input=800, output=300), latency=latency)


def prompts(stub: StubProvider) -> Counter[str]:
    return Counter(request.json["messages"][-1]["content"] for request in stub.requests)


def test_a_table_is_trained_and_bad_lines_are_told(cli: Cli, asked: Path, tmp_path: Path) -> None:
    with StubProvider(lambda _: echoing()) as stub:
        result = cli("--questions", str(asked), "--model", MODEL, "--json", stub=stub)
        out = published(result)
    assert result.exit_code == 1
    assert [one.line for one in out.left_out] == [2, 4]
    assert "not JSON" in out.left_out[0].reason
    assert "'k'" in out.left_out[1].reason
    assert (out.learned, out.failed) == (2, 0)
    estimate = out.estimate
    assert estimate is not None
    assert estimate.calls == len(stub.requests)
    assert set(prompts(stub).values()) == {1}
    assert 0 < estimate.low_usd <= estimate.expected_usd <= estimate.worst_usd
    assert 0 < out.spent_usd <= estimate.worst_usd
    table = qtables.load(tmp_path / "t.json")
    assert out.table is not None
    assert out.table.digest == table.digest
    assert (table.model, table.k, table.actions) == (MODEL, 8, ACTIONS)
    assert set(table.prompts) == {"answer"}
    assert table.visits.tolist() == [[2] * len(ACTIONS)]
    assert out.actions[0].tokens < out.actions[-2].tokens < 1
    assert (out.actions[-1].keep, out.actions[-1].tokens) == (1.0, 1.0)


def test_batches_teach_the_same_at_half_the_price(cli: Cli, asked: Path, tmp_path: Path) -> None:
    arguments = ["--questions", str(asked), "--model", MODEL, "--json"]
    with StubProvider(lambda _: echoing()) as stub:
        live = published(cli(*arguments, stub=stub))
    (tmp_path / "t.json.run.jsonl").unlink()
    book = BatchBook(lambda _: echoing())
    at_once = {"POSOLOGY_BATCH_WAIT": "0", "POSOLOGY_BATCH_POLL": "0.1"}
    with StubProvider(batches=book) as stub:
        out = published(cli(*arguments, "--tier", "batch", stub=stub, **at_once))
    assert out.actions == live.actions
    assert out.spent_usd * 2 == live.spent_usd
    assert out.estimate is not None
    assert live.estimate is not None
    assert out.estimate.worst_usd * 2 == live.estimate.worst_usd
    assert len(book.ledger.entries()) == live.estimate.calls
    assert {path.name for path in tmp_path.iterdir()} == {"q.jsonl", "t.json", "t.json.run.jsonl"}


def test_a_person_is_told_the_cost_before_and_the_table_after(cli: Cli, asked: Path) -> None:
    with StubProvider(lambda _: echoing()) as stub:
        result = cli("--questions", str(asked), "--model", MODEL, "--least-visits", "1", stub=stub)
    assert result.exit_code == 1
    assert "calls to make" in result.stderr
    assert "maximum" in result.stderr
    assert "line 2: the row is not JSON" in result.stderr
    assert "2 questions" in result.stdout
    assert "centroids" in result.stdout
    assert "POSOLOGY_QTABLE=t.json" in result.stderr


def test_a_dry_run_tells_the_cost_and_asks_nothing(cli: Cli, asked: Path, tmp_path: Path) -> None:
    with StubProvider([]) as stub:
        out = published(
            cli("--questions", str(asked), "--model", MODEL, "--dry-run", "--json", stub=stub)
        )
        assert not stub.requests
    assert out.estimate is not None
    assert out.estimate.worst_usd > 0
    assert (out.table, out.out) == (None, None)
    assert {path.name for path in tmp_path.iterdir()} == {"q.jsonl"}


def test_tables_of_other_recipes_cost_nothing_more(cli: Cli, asked: Path, tmp_path: Path) -> None:
    with StubProvider(lambda _: echoing()) as stub:
        cli("--questions", str(asked), "--model", MODEL, stub=stub)
        paid = len(stub.requests)
        result = cli("--questions", str(asked), "--model", MODEL, "--json", stub=stub)
        again = published(result)
        assert again.estimate is not None
        assert (again.estimate.calls, again.estimate.answered) == (0, paid)
        assert len(stub.requests) == paid
    first = qtables.load(tmp_path / "t.json")
    # neither an index nor a provider is there any more
    other = ["--from", "t.json.run.jsonl", "--alpha", "0.25", "--state-kind", "cosine"]
    result = cli(*other, "--actions", "0.1,1", "--score", "containment", "--json", POSOLOGY_INDEX="gone")  # fmt: skip
    out = published(result)
    table = qtables.load(tmp_path / "t.json")
    assert result.exit_code == 0
    assert (table.alpha, table.kind, table.actions) == (0.25, "cosine", (0.1, 1.0))
    assert out.estimate is None
    assert out.table is not None
    assert out.table.digest == table.digest != first.digest


def test_it_learns_about_the_compressor_that_will_compress(
    cli: Cli, asked: Path, tmp_path: Path
) -> None:
    arguments = ["--questions", str(asked), "--model", MODEL, "--actions", "0.2,1"]
    with StubProvider(lambda _: echoing()) as stub:
        cli(*arguments, stub=stub, POSOLOGY_COMPRESSOR="leancontext_top")
        asked_first = prompts(stub)
        assert qtables.load(tmp_path / "t.json").compressor == "leancontext_top"
        cli(*arguments, stub=stub, POSOLOGY_COMPRESSOR="leancontext")
    assert qtables.load(tmp_path / "t.json").compressor == "leancontext"
    # the whole context is the same to both, what they leave of it is not
    assert len(asked_first) == 4
    assert len(prompts(stub) - asked_first) == 2


def test_a_cap_stops_it_and_a_higher_one_goes_on(cli: Cli, asked: Path, tmp_path: Path) -> None:
    arguments = ["--questions", str(asked), "--model", MODEL]
    with StubProvider(lambda _: echoing()) as stub:
        plan = published(cli(*arguments, "--dry-run", "--json", stub=stub)).estimate
        assert plan is not None
        one = plan.worst_usd / plan.calls
        stopped = cli(*arguments, "--max-cost", f"{one:.9f}", stub=stub, POSOLOGY_CONCURRENCY="1")
        assert stopped.exit_code == 11, stopped.output
        assert "t.json.run.jsonl" in stopped.stderr
        assert "--max-cost" in stopped.stderr
        found = read_run(tmp_path / "t.json.run.jsonl")
        assert found.spent <= one
        assert 0 < len(found.replies) == len(stub.requests) < plan.calls
        assert not (tmp_path / "t.json").exists()
        assert cli(*arguments, stub=stub).exit_code == 1
        assert len(stub.requests) == plan.calls
        assert set(prompts(stub).values()) == {1}
    assert (tmp_path / "t.json").exists()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_run_that_was_killed_goes_on_and_pays_for_nothing_twice(
    cli: Cli, asked: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    run = tmp_path / "t.json.run.jsonl"
    with StubProvider(lambda _: echoing(0.3)) as stub:

        def ready() -> bool:
            return run.exists() and run.read_bytes().count(b'"row":"reply"') >= 3

        command = [
            "policy",
            "train",
            "--out",
            "t.json",
            "--questions",
            str(asked),
            "--model",
            MODEL,
        ]
        served = {"OPENAI_BASE_URL": stub.openai_url, "POSOLOGY_CONCURRENCY": "1"}
        kill_when(ready, command, environment | served, tmp_path)
        kept = set(read_run(run).replies)
        result = cli("--questions", str(asked), "--model", MODEL, "--json", stub=stub)
        out = published(result)
        assert out.estimate is not None
        assert out.estimate.answered == len(kept) >= 3
        assert set(read_run(run).replies) > kept
        # at most what was under way when it was killed is asked twice
        twice = [text for text, times in prompts(stub).items() if times > 1]
        assert len(twice) <= 1
        assert len(stub.requests) == out.estimate.calls + out.estimate.answered + len(twice)
    assert qtables.load(tmp_path / "t.json").visits.tolist() == [[2] * len(ACTIONS)]


def test_the_offline_reader_is_free(cli: Cli, asked: Path) -> None:
    out = published(cli("--questions", str(asked), "--actions", "0.2,1", "--json"))
    assert out.estimate is not None
    assert out.estimate.free
    assert out.spent_usd == 0
    assert [one.keep for one in out.actions] == [0.2, 1.0]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ([], 2),
        (["--questions", "q.jsonl", "--from", "r"], 2),
        (["--questions", "gone.jsonl"], 3),
        (["--from", "gone.jsonl"], 3),
        (["--questions", "q.jsonl", "--actions", "0.1,x"], 3),
        (["--questions", "q.jsonl", "--actions", "0.1,2"], 3),
        (["--questions", "q.jsonl", "--score", "bleu"], 3),
        (["--questions", "q.jsonl", "--mode", "guess"], 3),
        (["--questions", "empty.jsonl"], 3),
        (["--questions", "q.jsonl", "--model", "openai:nobody-knows-it"], 4),
        (["--questions", "q.jsonl", "--index", "gone"], 5),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(
    cli: Cli, asked: Path, tmp_path: Path, arguments: list[str], status: int
) -> None:
    (tmp_path / "empty.jsonl").write_text("\n{}\n")
    assert asked.exists()
    result = cli(*arguments)
    assert result.exit_code == status, result.output
    assert {path.name for path in tmp_path.iterdir()} <= {"q.jsonl", "empty.jsonl"}
