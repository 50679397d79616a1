"""``posology eval`` as a person meets it: a real index, a provider on a socket, a cap, and a kill."""

from __future__ import annotations

import json
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import Result

from orchestrator.evaluation.folder import read_folder
from orchestrator.evaluation.forms import EvalOutput, EvalRow, Outcome
from posology.published.answers import Status as Ended
from posology.published.money import SpendOutput
from posology.testing import Reply, Status, StubProvider
from posology.testing.provider.echo import echo
from posology.types import Usage
from tests.support.commands import Cli, command_line
from tests.support.indices import write_rows
from tests.support.paid_runs import MODEL, environment_of, ingest_six, kill_when

SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schema"
QUESTIONS: list[dict[str, Any]] = [
    {
        "id": "risk",
        "question": "Did aspirin lower the risk of stroke?",
        "gold": {"answers": ["lowered the risk of stroke"], "passages": ["t:1", "t:2"]},
    },
    {
        "id": "verdict",
        "question": "Was bleeding seen in group 3?",
        "form": "yes_no",
        "gold": {"verdict": "no"},
    },
    {"id": "none", "question": "Who won the cup?", "gold": {"answerable": False}},
    {
        "id": "dose",
        "question": "What was the dose of aspirin in group 4?",
        "gold": {"passages": ["t:4"]},
    },
]

#: as many as show every outcome; the last of each five is answered by no passage
SIMULATED: list[dict[str, Any]] = [
    {
        "id": f"{group}-{n}",
        "question": f"Question {n}: was bleeding seen in group {group}?",
        "form": "yes_no",
        "gold": {"answerable": False} if n == 4 else {"verdict": "no", "passages": [f"t:{group}"]},
    }
    for group in range(1, 6)
    for n in range(5)
]


@pytest.fixture(scope="module")
def index(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ingest_six(tmp_path_factory.mktemp("index"), tiny_encoder)


@pytest.fixture
def environment(index: Path, tiny_encoder: Path, tmp_path: Path) -> dict[str, str]:
    return environment_of(index, tiny_encoder) | {"POSOLOGY_HOME": str(tmp_path / "home")}


@pytest.fixture
def cli(environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "q.jsonl", QUESTIONS)
    return command_line(environment, "eval", "q.jsonl")


def published(result: Result) -> EvalOutput:
    assert result.exit_code in (0, 1), result.output
    schema = json.loads((SCHEMAS / "eval.json").read_text(encoding="utf-8"))
    jsonschema.validate(json.loads(result.stdout), schema)
    return EvalOutput.model_validate_json(result.stdout)


def rows_of(folder: Path) -> list[EvalRow]:
    schema = json.loads((SCHEMAS / "evalrow.json").read_text(encoding="utf-8"))
    for line in (folder / "rows.jsonl").read_text(encoding="utf-8").splitlines():
        jsonschema.validate(json.loads(line), schema)
    return list(read_folder(folder).values())


def echoing(latency: float = 0.0) -> Reply:
    return Reply(text=echo, usage=Usage(input=800, output=300), latency=latency)


def prompts(stub: StubProvider) -> Counter[str]:
    return Counter(request.json["messages"][-1]["content"] for request in stub.requests)


def test_the_offline_reader_costs_nothing_and_a_second_run_asks_nothing(
    cli: Cli, tmp_path: Path
) -> None:
    given = ("--out", "run", "--policy", "direct", "--policy", "router", "--json")
    result = cli(*given)
    out = published(result)
    assert "8 questions to ask" in result.stderr
    assert "The model is free" in result.stderr
    assert out.spent_usd == 0
    assert [(cell.policy, cell.questions, cell.missing) for cell in out.cells] == [
        ("direct", 4, 0),
        ("router", 4, 0),
    ]
    (risk, *_) = [row for row in rows_of(tmp_path / "run") if row.id == "risk"]
    assert risk.outcome is Outcome.RIGHT
    assert risk.citations is not None
    assert risk.citations.gold == 2
    assert risk.decision is not None
    assert risk.seconds is not None
    assert [one.against_policy for one in out.differences] == ["direct"]
    before = (tmp_path / "run" / "rows.jsonl").read_bytes()
    again = cli(*given)
    assert "0 questions to ask, for all policies and models; 8 already answered" in again.stderr
    assert published(again).cells == out.cells
    assert (tmp_path / "run" / "rows.jsonl").read_bytes() == before


def test_reports_show_every_cell_and_end_as_wellformed_pages(cli: Cli, tmp_path: Path) -> None:
    result = cli("--out", "run")
    assert result.exit_code == 0, result.output
    assert "Reports: run/report.md, run/report.html. Rows: run/rows.jsonl." in result.stdout
    markdown = (tmp_path / "run" / "report.md").read_text(encoding="utf-8")
    assert "is no language model" in markdown
    for figure in re.findall(r"\((\w+\.svg)\)", markdown):
        assert (tmp_path / "run" / figure).read_text(encoding="utf-8").startswith("<svg")
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == page.count("</svg>") == 2
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)


def test_a_paid_model_needs_a_cap_and_the_price_comes_first(cli: Cli, tmp_path: Path) -> None:
    with StubProvider(lambda _: echoing()) as stub:
        refused = cli("--out", "run", "--model", MODEL, stub=stub)
        assert refused.exit_code == 3
        assert "--max-cost" in refused.stderr
        dry = published(cli("--out", "run", "--model", MODEL, "--dry-run", "--json", stub=stub))
        assert not stub.requests
        assert not dry.cells
        price = dry.estimate
        assert 0 < price.low_usd <= price.expected_usd <= price.worst_usd
        assert not (tmp_path / "run" / "rows.jsonl").exists()
        done = published(
            cli("--out", "run", "--model", MODEL, "--max-cost", "0.5", "--json", stub=stub)
        )
    (cell,) = done.cells
    assert cell.cost_usd is not None
    assert 0 < done.spent_usd <= price.worst_usd
    assert done.spent_usd == sum(row.charged_usd for row in rows_of(tmp_path / "run"))
    assert cell.tokens is not None
    assert cell.tokens.mean > 0


def test_a_cap_ends_the_run_and_a_larger_one_resumes_it(cli: Cli, tmp_path: Path) -> None:
    given = ("--out", "run", "--model", MODEL, "--policy", "direct")
    with StubProvider(lambda _: echoing()) as stub:
        short = cli(*given, "--at-once", "1", "--max-cost", "0.0005", stub=stub)
        assert short.exit_code == 11, short.output
        assert "run the same command again to resume" in short.stderr
        some = rows_of(tmp_path / "run") if (tmp_path / "run" / "rows.jsonl").exists() else []
        assert len(some) < len(QUESTIONS)
        if some:
            report = (tmp_path / "run" / "report.md").read_text(encoding="utf-8")
            assert "were not asked yet" in report
        done = published(cli(*given, "--max-cost", "1", "--json", stub=stub))
        assert done.cells[0].questions == len(QUESTIONS)
        assert set(prompts(stub).values()) == {1}
    assert done.spent_usd <= Decimal(1)


def test_a_run_is_in_the_tenants_ledger_and_stops_at_its_limit(
    cli: Cli, redis_url: str, tmp_path: Path
) -> None:
    given = ("--out", "run", "--model", MODEL, "--policy", "direct", "--max-cost", "1")
    env = {"POSOLOGY_REDIS_URL": redis_url, "POSOLOGY_TENANT": "trials"}
    with StubProvider(lambda _: echoing()) as stub:
        done = published(cli(*given, "--json", stub=stub, **env))
        spend = command_line(env, "spend")("--json")
        assert SpendOutput.model_validate_json(spend.stdout).total.charged_usd == done.spent_usd > 0
        limited = command_line(env, "tenants", "create")(
            "trials", "--day", f"{done.spent_usd:f}", "--model", "none"
        )
        assert limited.exit_code == 0, limited.output
        sent = len(stub.requests)
        more = cli("--out", "other", *given[2:], stub=stub, **env)
    assert more.exit_code == 11, more.output
    assert len(stub.requests) == sent


def test_runs_are_compared_question_by_question(cli: Cli, tmp_path: Path) -> None:
    cli("--out", "first", "--policy", "direct")
    out = published(cli("--out", "second", "--policy", "router", "--against", "first", "--json"))
    (found,) = out.differences
    assert (found.policy, found.against_policy, found.against) == ("router", "direct", "first")
    assert found.questions == len(QUESTIONS)
    wrong = cli("--out", "third", "--against", "nowhere")
    assert wrong.exit_code == 3
    assert "holds no run" in wrong.stderr


def test_a_corrected_known_answer_grades_the_row_again_and_asks_nothing(
    cli: Cli, tmp_path: Path
) -> None:
    cli("--out", "run")
    write_rows(
        tmp_path / "q.jsonl",
        [QUESTIONS[0] | {"gold": {"answers": ["a word that is not there"]}}, *QUESTIONS[1:]],
    )
    again = cli("--out", "run", "--json")
    assert "0 questions to ask" in again.stderr
    assert published(again).cells[0].questions == len(QUESTIONS)
    by_id = {row.id: row for row in read_folder(tmp_path / "run").values()}
    assert by_id["risk"].outcome is Outcome.WRONG
    assert by_id["risk"].citations is None


def test_a_failed_question_has_a_row_and_is_asked_again(cli: Cli, tmp_path: Path) -> None:
    given = ("--out", "run", "--model", MODEL, "--policy", "direct", "--max-cost", "1", "--json")
    with StubProvider(lambda _: Status(code=400)) as stub:
        result = cli(*given, stub=stub)
        assert result.exit_code == 1
        assert published(result).cells[0].outcomes[Outcome.FAILED] == len(QUESTIONS)
    assert all("RequestRejected" in (row.error or "") for row in rows_of(tmp_path / "run"))
    with StubProvider(lambda _: echoing()) as stub:
        again = published(cli(*given, stub=stub))
    assert again.cells[0].outcomes[Outcome.FAILED] == 0
    assert all(row.error is None for row in rows_of(tmp_path / "run"))


def test_another_index_is_refused(
    cli: Cli, tiny_encoder: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cli("--out", "run")
    other = ingest_six(tmp_path_factory.mktemp("other"), tiny_encoder)
    refused = cli("--out", "run", "--index", str(other))
    assert refused.exit_code == 3
    assert "are from" in refused.stderr


def test_passages_of_the_files_are_indexed_once(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"pmid": str(n), "question": f"Did it lower the risk of disease {n}?", "answer": "yes",
         "contexts": [f"The drug lowered the risk of disease {n}.", "Nobody was lost."]}
        for n in range(5)
    ]  # fmt: skip
    write_rows(tmp_path / "train.jsonl", rows)
    squad = {"context": "It began in 1973.", "qas": [
        {"id": "a", "question": "When did it begin?", "answers": [{"text": "1973"}]}]}  # fmt: skip
    write_rows(tmp_path / "dev.jsonl", [squad])
    write_rows(tmp_path / "q.jsonl", QUESTIONS)
    given = ("pubmedqa:train.jsonl", "squad:dev.jsonl", "--own-passages", "--out", "run", "--json")
    alone = command_line(environment_of(tmp_path / "nowhere", tiny_encoder), "eval")
    out = published(alone(*given))
    first, second = out.cells
    assert first.retrieval_recall is not None
    assert first.retrieval_recall.mean == 1.0
    assert first.outcomes[Outcome.UNDECIDED] + first.outcomes[Outcome.REFUSED] == 5
    assert second.outcomes[Outcome.RIGHT] == 1
    made = (tmp_path / "run" / "index.complete").stat().st_mtime_ns
    assert published(alone(*given)).cells == out.cells
    assert (tmp_path / "run" / "index.complete").stat().st_mtime_ns == made
    other = alone("squad:dev.jsonl", *given[2:])
    assert other.exit_code == 3
    assert "is of other suites" in json.loads(other.stdout)["error"]["message"]
    refused = alone("q.jsonl", *given[2:-1])
    assert refused.exit_code == 3


def test_simulated_models_answer_from_the_known_answers(cli: Cli, tmp_path: Path) -> None:
    write_rows(tmp_path / "q.jsonl", SIMULATED)
    given = ("--out", "run", "--policy", "direct", "--policy", "briefcontext", "--json")
    models = ("--model", "simulated:strong", "--model", "simulated:weak")
    out = published(cli(*given, *models))
    assert out.estimate.free
    assert out.spent_usd == 0
    assert {cell.model for cell in out.cells} == {"simulated:strong", "simulated:weak"}
    rows = rows_of(tmp_path / "run")
    assert len(rows) == 4 * len(SIMULATED)
    for row in rows:
        assert (row.input_tokens or 0) > 0
        if row.outcome is Outcome.RIGHT and row.gold.answerable:
            assert row.citations is not None
            assert row.citations.right > 0
        if row.status is not Ended.REFUSED:
            assert (row.answer or "").startswith("Simulated")
        if (row.answer or "").startswith("Simulated, misread"):
            assert row.outcome is Outcome.WRONG
    assert {Outcome.RIGHT, Outcome.WRONG, Outcome.REFUSED} <= {row.outcome for row in rows}
    for name in ("report.md", "report.html"):
        report = (tmp_path / "run" / name).read_text(encoding="utf-8")
        assert "are SIMULATED: no model answered" in report
    again = cli(*given, *models)
    assert "0 questions to ask" in again.stderr
    assert published(again).cells == out.cells


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"gold": {"verdict": "no"}, "form": "yes_no"}, "has neither"),
        ({"gold": {"answers": ["other"]}}, "the same words and a different gold"),
    ],
)
def test_a_question_without_usable_gold_stops_a_simulated_model(
    row: dict[str, Any], said: str, cli: Cli, tmp_path: Path
) -> None:
    asked = {"id": "more", "question": SIMULATED[0]["question"]} | row
    write_rows(tmp_path / "q.jsonl", [SIMULATED[0], asked])
    refused = cli("--out", "run", "--model", "simulated:weak")
    assert refused.exit_code == 3
    assert said in " ".join(refused.stderr.split())
    assert not (tmp_path / "run" / "rows.jsonl").exists()


def test_an_unknown_profile_is_refused_with_those_that_exist(cli: Cli) -> None:
    refused = cli("--out", "run", "--model", "simulated:clever")
    assert refused.exit_code == 4
    assert "simulated:over-confident" in refused.stderr


@pytest.mark.parametrize("command", ["ask", "submit"])
def test_no_other_command_asks_a_simulated_model(command: str, environment: dict[str, str]) -> None:
    refused = command_line(environment, command)("Does it help?", "--model", "simulated:weak")
    assert refused.exit_code == 4
    said = " ".join(refused.stderr.split())
    assert "is a simulation that needs known answers: only `posology eval` asks it" in said


@pytest.mark.slow
def test_a_killed_run_resumes_and_pays_for_no_call_twice(
    cli: Cli, environment: dict[str, str], tmp_path: Path
) -> None:
    given = ("--out", "run", "--model", MODEL, "--policy", "briefcontext", "--max-cost", "1")
    with StubProvider(lambda _: echoing(latency=0.05)) as stub:

        def some_replies() -> bool:
            calls = tmp_path / "run" / "calls.jsonl"
            return calls.exists() and calls.read_bytes().count(b'{"row":"closed"') >= 4

        kill_when(
            some_replies,
            ["eval", "q.jsonl", "--at-once", "1", *given],
            environment | {"OPENAI_BASE_URL": stub.openai_url},
            tmp_path,
        )
        kept = (tmp_path / "run" / "calls.jsonl").read_text(encoding="utf-8").splitlines()
        paid = [json.loads(line) for line in kept if line.startswith('{"row":"closed"')]
        sent = len(stub.requests)
        done = published(cli(*given, "--json", stub=stub))
        twice = [text for text, times in prompts(stub).items() if times > 1]
        # at most the calls in flight when it was killed: their replies never arrived
        assert len(twice) <= sent - len(paid)
    (cell,) = done.cells
    assert (cell.questions, cell.missing) == (len(QUESTIONS), 0)
    rows = rows_of(tmp_path / "run")
    assert {row.id for row in rows} == {row["id"] for row in QUESTIONS}
    assert done.spent_usd == sum(row.charged_usd for row in rows)
