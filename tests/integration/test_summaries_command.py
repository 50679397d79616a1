"""``posology compressor dataset`` and ``finetune`` as a person meets them, to a compressor that works."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import Result

from orchestrator.training.forms import DatasetOutput, FinetuneOutput
from orchestrator.training.summaries.pairs import read_pairs
from posology.testing import Reply, StubProvider, save_tiny_summarizer
from posology.testing.provider.batches.book import BatchBook
from posology.types import Usage
from strategies.compression.parts import Parts
from strategies.compression.summarization.compressor import NAME, make
from tests.support.commands import Cli, command_line
from tests.support.compression import compressible
from tests.support.indices import write_rows
from tests.support.paid_runs import MODEL

SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schema"
BODY = "Adults took it for a year and were seen each month. Nobody took anything else. " * 5


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    rows = [
        {"id": f"t:{n}", "text": f"Drug number {n} helped the heart. {BODY}"} for n in range(12)
    ]
    return write_rows(tmp_path / "c.jsonl", [*rows, {"id": "short", "text": "Too short."}])


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)
    env = {"POSOLOGY_ATTEMPTS": "1", "OPENAI_API_KEY": "sk-test", "COLUMNS": "200"}
    return command_line(env, "compressor")


def shortening(body: Any) -> str:
    """Too long at first, then right; one passage never is."""
    messages = body["messages"]
    first = messages[1]["content"].split("text: ")[1].split(". ")[0]
    if first.endswith("number 7 helped the heart"):
        return "No."
    return f"{first}. " + "Adults took it for a year. " * (30 if len(messages) == 2 else 3)


def replying() -> Reply:
    return Reply(text=shortening, usage=Usage(input=400, output=60))


def stub() -> StubProvider:
    return StubProvider(lambda _: replying())


def published(result: Result, name: str) -> Any:
    assert result.exit_code == 0, result.output
    out = json.loads(result.stdout)
    jsonschema.validate(out, json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8")))
    return result.stdout


def test_from_a_corpus_to_a_compressor(cli: Cli, corpus: Path, tmp_path: Path) -> None:
    arguments = ["dataset", "--corpus", str(corpus), "--model", MODEL, "--out", "d.jsonl", "--json"]
    with stub() as provider:
        dry = DatasetOutput.model_validate_json(
            published(cli(*arguments, "--dry-run", stub=provider), "dataset")
        )
        assert not provider.requests
        assert not (tmp_path / "d.jsonl.run.jsonl").exists()
        out = DatasetOutput.model_validate_json(
            published(cli(*arguments, stub=provider), "dataset")
        )
        paid = len(provider.requests)
        assert paid == 11 * 2 + 4
        again = DatasetOutput.model_validate_json(
            published(cli(*arguments, stub=provider), "dataset")
        )
        assert len(provider.requests) == paid
    assert dry.out is None
    assert dry.estimate == out.estimate
    assert (out.estimate.passages, out.estimate.done) == (12, 0)
    assert 0 < out.spent_usd <= out.estimate.worst_usd
    assert (out.train, out.validation, out.test) == (9, 1, 1)
    assert [(one.id, one.reason, one.rounds) for one in out.left_out] == [("t:7", "never_fit", 4)]
    assert out.mean_rounds == 2
    assert out.first_sentence == 1
    assert out.mean_share is not None
    assert 0.2 <= out.mean_share <= 0.4
    assert (again.estimate.passages, again.estimate.done) == (0, 12)
    assert again.spent_usd == out.spent_usd
    assert read_pairs(tmp_path / "d.jsonl").share == 0.3

    save_tiny_summarizer(tmp_path / "tiny")
    tuned = cli(
        "finetune", "--dataset", "d.jsonl", "--init", "tiny", "--out", "m30", "--epochs", "2", "--tokens", "32",
        "--device", "cpu", "--json",
    )  # fmt: skip
    made = FinetuneOutput.model_validate_json(published(tuned, "finetune"))
    assert (made.share, made.device, len(made.losses)) == (0.3, "cpu", 2)
    assert "epoch 2 of 2" in tuned.stderr
    compressor = make(Parts(models={NAME: str(tmp_path / "m30")}))
    compressed = compressor(compressible([f"Drug number 5 helped the heart. {BODY}"]), None)
    assert compressed.compressor == NAME
    assert compressor.expected_ratio(None) == made.left


def test_conversations_go_on_from_batch_to_batch(cli: Cli, corpus: Path, tmp_path: Path) -> None:
    arguments = ["dataset", "--corpus", str(corpus), "--model", MODEL, "--out", "d.jsonl", "--json"]
    at_once = {"POSOLOGY_BATCH_WAIT": "0", "POSOLOGY_BATCH_POLL": "0.1"}
    with stub() as provider:
        live = published(cli(*arguments, stub=provider), "dataset")
    (tmp_path / "d.jsonl.run.jsonl").unlink()
    (tmp_path / "d.jsonl").unlink()
    book = BatchBook(lambda _: replying())
    with StubProvider(batches=book) as provider:
        batched = published(cli(*arguments, "--tier", "batch", stub=provider, **at_once), "dataset")
    one, other = map(DatasetOutput.model_validate_json, (live, batched))
    assert other.spent_usd * 2 == one.spent_usd
    assert other.estimate.worst_usd * 2 == one.estimate.worst_usd
    assert (other.train, other.left_out, other.mean_rounds) == (
        one.train, one.left_out, one.mean_rounds
    )  # fmt: skip
    assert len(book.ledger.entries()) == 11 * 2 + 4


def test_a_person_is_told_what_it_costs_and_what_came_of_it(cli: Cli, corpus: Path) -> None:
    with stub() as provider:
        told = cli(
            "dataset", "--corpus", str(corpus), "--model", MODEL, "--out", "d.jsonl", stub=provider
        )
    assert told.exit_code == 0, told.output
    assert "12 passages to shorten" in told.stderr
    assert "maximum" in told.stderr
    assert "t:7: never_fit after 4 replies" in told.stderr
    assert "9 for training" in told.stderr


def test_a_cap_stops_it_and_a_higher_one_goes_on(cli: Cli, corpus: Path, tmp_path: Path) -> None:
    arguments = ["dataset", "--corpus", str(corpus), "--model", MODEL, "--out", "d.jsonl"]
    with stub() as provider:
        stopped = cli(*arguments, "--max-cost", "0.0009", stub=provider)
        assert stopped.exit_code == 11, stopped.output
        assert "d.jsonl.run.jsonl" in stopped.stderr
        before = len(provider.requests)
        assert 0 < before < 26
        assert not (tmp_path / "d.jsonl").exists()
        assert cli(*arguments, stub=provider).exit_code == 0
        assert len(provider.requests) == 26


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["dataset", "--out", "d.jsonl"], 2, "--corpus"),
        (["dataset", "--corpus", "none.jsonl", "--out", "d.jsonl"], 3, "no such file"),
        (["dataset", "--corpus", "c.jsonl", "--out", "d.jsonl"], 4, "--model"),
        (["dataset", "--corpus", "c.jsonl", "--share", "0.1", "--out", "d"], 2, "--tolerance"),
        (["dataset", "--corpus", "c.jsonl", "--least-words", "900", "--most-words", "999", "--out", "d"], 3, "900"),
        (["finetune", "--dataset", "none.jsonl", "--out", "m"], 3, "No such file"),
        (["finetune", "--dataset", "c.jsonl", "--out", "m"], 3, "c.jsonl"),
        (["finetune", "--dataset", "c.jsonl", "--out", "m", "--device", "tpu"], 3, "tpu"),
        (["finetune", "--dataset", "c.jsonl", "--out", "m", "--device", "cuda:99"], 3, "--device cpu"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(
    cli: Cli, corpus: Path, arguments: list[str], status: int, said: str
) -> None:
    assert corpus.name == "c.jsonl"
    result = cli(*arguments)
    assert result.exit_code == status, result.output
    assert said in " ".join(result.output.split())
