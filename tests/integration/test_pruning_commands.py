"""``posology compressor label`` and ``train``: a real index, a provider on a socket, a budget, a tiny model, a kill."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from orchestrator.training.forms import LabelOutput, PrunerOutput
from orchestrator.training.pruner.rows import read_examples
from posology.testing import Reply, Status, StubProvider, save_tiny_reranker
from posology.types import Finish, Usage
from tests.support.commands import Cli, command_line
from tests.support.indices import write_rows
from tests.support.paid_runs import MODEL, environment_of, ingest_six, kill_when

QUESTIONS: list[dict[str, Any] | str] = [
    {"question": "Does aspirin lower the risk of stroke?"},
    "{no json",
    {"question": "What was the dose of aspirin in adults?", "answer": "10 mg"},
]


@pytest.fixture(scope="module")
def index(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ingest_six(tmp_path_factory.mktemp("index"), tiny_encoder)


@pytest.fixture(scope="module")
def reranker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_reranker(tmp_path_factory.mktemp("init"), context=128)


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "q.jsonl", QUESTIONS)


@pytest.fixture
def environment(index: Path, tiny_encoder: Path) -> dict[str, str]:
    return environment_of(index, tiny_encoder)


@pytest.fixture
def cli(environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)
    return command_line(environment, "compressor")


def citing(body: Any) -> str:
    """Cites the sentences that name the dose; where there is none, one reply cites nothing and others say so."""
    shown = re.findall(r"^\[(\d+)\] (.*)$", body["messages"][-1]["content"], re.MULTILINE)
    cited = [number for number, sentence in shown if "mg" in sentence]
    if cited:
        return f"So many mg a day {''.join(f'[{number}]' for number in cited)}."
    return "It rests on something." if "Bleeding" in shown[0][1] else "No answer"


def replying(latency: float = 0.0) -> Reply:
    return Reply(text=citing, usage=Usage(input=300, output=20), latency=latency)


def labelled(result: Result) -> LabelOutput:
    assert result.exit_code in (0, 1), result.output
    return LabelOutput.model_validate_json(result.stdout)


def trained(result: Result) -> PrunerOutput:
    assert result.exit_code == 0, result.output
    return PrunerOutput.model_validate_json(result.stdout)


def prompts(stub: StubProvider) -> Counter[str]:
    return Counter(request.json["messages"][-1]["content"] for request in stub.requests)


def test_labels_are_what_replies_cite(cli: Cli, asked: Path, tmp_path: Path) -> None:
    arguments = ["label", "--questions", str(asked), "--model", MODEL, "--out", "l.jsonl", "--json"]
    with StubProvider(lambda _: replying()) as stub:
        result = cli(*arguments, stub=stub)
        out = labelled(result)
        assert result.exit_code == 1
        assert [one.line for one in out.left_out] == [2]
        assert out.estimate.calls == len(stub.requests) == 10
        assert set(prompts(stub).values()) == {1}
        assert "response_format" not in stub.requests[0].json
    assert out.estimate.low_usd <= out.estimate.expected_usd <= out.estimate.worst_usd
    assert 0 < out.spent_usd <= out.estimate.worst_usd
    assert out.labelled + out.filtered == 10
    examples = read_examples(tmp_path / "l.jsonl")
    assert len(examples) == out.labelled
    assert sum(not one.relevant for one in examples) == out.empty > 0
    for one in examples:
        assert one.title.startswith("Trial")
        assert one.relevant == tuple(i for i, s in enumerate(one.sentences) if "mg" in s)
    assert len({len(one.sentences) for one in examples}) > 1


def test_what_is_labelled_is_paid_for_once(cli: Cli, asked: Path, tmp_path: Path) -> None:
    arguments = ["label", "--questions", str(asked), "--model", MODEL, "--out", "l.jsonl"]
    with StubProvider(lambda _: replying()) as stub:
        plan = labelled(cli(*arguments, "--dry-run", "--json", stub=stub))
        assert not stub.requests
        assert not (tmp_path / "l.jsonl").exists()
        one = plan.estimate.worst_usd / plan.estimate.calls
        stopped = cli(*arguments, "--max-cost", f"{one * 2:.9f}", stub=stub, POSOLOGY_CONCURRENCY="1")  # fmt: skip
        assert stopped.exit_code == 11, stopped.output
        assert "l.jsonl" in stopped.stderr
        assert 0 < len(stub.requests) < plan.estimate.calls
        with (tmp_path / "l.jsonl").open("a") as file:
            file.write('{"row":"label","call":"bro')
        out = labelled(cli(*arguments, "--json", stub=stub))
        assert out.estimate.answered + out.estimate.calls == plan.estimate.calls
        assert out.estimate.answered > 0
        told = cli(*arguments, stub=stub)
        assert "0 calls to make; 10 already answered" in told.stderr
        assert "10 calls" not in told.stderr
        assert len(stub.requests) == plan.estimate.calls
        assert set(prompts(stub).values()) == {1}
        # other lengths of the same passages are other calls
        other = labelled(cli(*arguments, "--seed", "1", "--dry-run", "--json", stub=stub))
        assert other.estimate.calls > 0


def test_calls_that_fail_are_told_and_made_again(cli: Cli, asked: Path, tmp_path: Path) -> None:
    arguments = ["label", "--questions", str(asked), "--model", MODEL, "--out", "l.jsonl", "--json"]
    with StubProvider([Status(code=400), *[replying()] * 9]) as stub:
        result = cli(*arguments, stub=stub, POSOLOGY_CONCURRENCY="1")
        assert (result.exit_code, labelled(result).failed) == (1, 1)
    with StubProvider(lambda _: replying()) as stub:
        assert labelled(cli(*arguments, stub=stub)).failed == 0
        assert len(stub.requests) == 1
    with StubProvider(lambda _: Status(code=401)) as stub:
        refused = cli(*arguments[:-1], "--seed", "2", stub=stub, POSOLOGY_CONCURRENCY="2")
        assert refused.exit_code == 6
        assert len(stub.requests) <= 2


def test_a_reply_of_the_safety_system_teaches_nothing(cli: Cli, asked: Path) -> None:
    arguments = ["label", "--questions", str(asked), "--model", MODEL, "--out", "l.jsonl", "--json"]
    reply = Reply(text="I cannot help.", finish=Finish.FILTERED)
    with StubProvider(lambda _: reply) as stub:
        out = labelled(cli(*arguments, stub=stub))
    assert (out.labelled, out.filtered) == (0, 10)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["label", "--out", "l.jsonl"], 2),
        (["label", "--questions", "gone.jsonl", "--out", "l.jsonl", "--model", MODEL], 3),
        (["label", "--questions", "empty.jsonl", "--out", "l.jsonl", "--model", MODEL], 3),
        (["label", "--questions", "q.jsonl", "--out", "l.jsonl"], 3),
        (["label", "--questions", "q.jsonl", "--out", "no/l.jsonl", "--model", MODEL], 3),
        (["label", "--questions", "q.jsonl", "--out", "q.jsonl", "--model", MODEL], 3),
        (["label", "--questions", "q.jsonl", "--out", "l.jsonl", "--model", "openai:nobody"], 4),
        (["label", "--questions", "q.jsonl", "--out", "l.jsonl", "--model", MODEL, "--index", "gone"], 5),
        (["train", "--labels", "gone.jsonl", "--out", "m"], 3),
        (["train", "--labels", "q.jsonl", "--out", "m"], 3),
        (["train", "--labels", "gold.jsonl", "--out", "q.jsonl"], 3),
        (["train", "--labels", "gold.jsonl", "--out", "m", "--init", "nobody/nothing"], 4),
        (["train", "--labels", "gold.jsonl", "--out", "m", "--device", "abacus"], 2),
        (["train", "--labels", "gold.jsonl", "--out", "m", "--lr", "0"], 3),
        (["train", "--labels", "gold.jsonl", "--out", "full"], 3),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_and_leaves_nothing(
    cli: Cli, asked: Path, gold: Path, tmp_path: Path, arguments: list[str], status: int
) -> None:
    (tmp_path / "empty.jsonl").write_text("\n{}\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    before = asked.read_bytes()
    result = cli(*arguments)
    assert result.exit_code == status, result.output
    assert asked.read_bytes() == before
    assert not (tmp_path / "l.jsonl").exists()
    assert not any((tmp_path / "m").glob("*"))


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    """Labels that somebody wrote."""
    path = tmp_path / "gold.jsonl"
    sentences = ["Aspirin lowered the risk.", "The dose was 5 mg.", "Nobody was lost."]
    rows = [
        {
            "question": f"What was dose {n}?",
            "sentences": sentences[n % 2 :],
            "relevant": [1 - n % 2],
        }
        for n in range(20)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_pruner_is_trained_and_prunes(
    cli: Cli, gold: Path, reranker: Path, tmp_path: Path
) -> None:
    arguments = [
        "train",
        "--labels",
        str(gold),
        "--init",
        str(reranker),
        "--out",
        "m",
        "--lr",
        "3e-3",
    ]
    out = trained(cli(*arguments, "--epochs", "40", "--batch", "4", "--held", "0.2", "--json"))
    assert (out.learned, out.held, out.steps, out.resumed_at) == (16, 4, 160, 0)
    assert out.last.pruning < out.first.pruning / 2
    assert out.held_before is not None
    assert out.held_after is not None
    assert out.held_after.pruning < out.held_before.pruning
    assert not list(tmp_path.glob("m/.training*"))
    about = json.loads((tmp_path / "m" / "posology.json").read_text())
    assert (about["kind"], about["rate"], about["weight"], about["steps"]) == ("provence", 3e-3, 0.05, 160)  # fmt: skip
    from strategies.compression.parts import Parts
    from strategies.compression.provence import make, make_reranker
    from tests.unit.strategies.provence.conftest import retrieve

    retrieval = retrieve("Aspirin lowered the risk. The dose was 5 mg. Nobody was lost.", question="What was dose 3?")  # fmt: skip
    parts = Parts(models={"provence": str(tmp_path / "m")})
    found = make(parts)(retrieval, None)
    assert [s.of(e.passage.text) for e in found.excerpts for s in e.sentences] == ["The dose was 5 mg."]  # fmt: skip
    assert make_reranker(parts)(retrieval).shape == (1,)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_training_that_was_killed_ends_as_one_that_was_not(
    cli: Cli, gold: Path, reranker: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    from safetensors.numpy import load_file

    arguments = ["train", "--labels", str(gold), "--init", str(reranker), "--epochs", "15", "--batch", "2",
                 "--lr", "1e-3", "--save-every", "5", "--loss", "mean", "--device", "cpu"]  # fmt: skip
    # a mean keeps differences of rounding between one thread and several small
    whole = trained(cli(*arguments, "--out", "whole", "--json"))
    # it gives way to the process that waits to kill it in time
    before = "import os, torch; os.nice(15); torch.set_num_threads(1)"
    state = tmp_path / "killed" / ".training" / "state.json"
    command = ["compressor", *arguments, "--out", "killed"]
    kill_when(state.exists, command, environment, tmp_path, before=before)
    refused = cli(*arguments[:-2], "--out", "killed", "--seed", "9")
    assert refused.exit_code == 3
    assert "other settings" in refused.stderr
    out = trained(cli(*arguments, "--out", "killed", "--json"))
    assert 0 < out.resumed_at < out.steps == whole.steps
    one, other = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "killed"))
    assert one.keys() == other.keys()
    assert max(abs(one[name] - other[name]).max() for name in one) < 1e-5
    assert out.last.pruning == pytest.approx(whole.last.pruning, abs=1e-4)


def test_a_damaged_state_says_what_to_do(
    cli: Cli, gold: Path, reranker: Path, tmp_path: Path
) -> None:
    (tmp_path / "m" / ".training").mkdir(parents=True)
    (tmp_path / "m" / ".training" / "state.json").write_text("{")
    result = cli("train", "--labels", str(gold), "--init", str(reranker), "--out", "m")
    assert result.exit_code == 3
    assert ".training" in result.stderr


def test_an_encoder_without_a_ranking_head_needs_lambda_0(cli: Cli, gold: Path, reranker: Path, tmp_path: Path) -> None:  # fmt: skip
    from transformers import AutoModel

    bare = tmp_path / "bare"
    AutoModel.from_pretrained(reranker).save_pretrained(bare)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(reranker / name, bare)
    arguments = ["train", "--labels", str(gold), "--init", str(bare), "--out", "m"]
    result = cli(*arguments)
    assert result.exit_code == 3
    assert "--lambda 0" in result.stderr
    assert trained(cli(*arguments, "--lambda", "0", "--json")).steps == 1


def test_somebody_at_a_terminal_is_told(cli: Cli, gold: Path, reranker: Path, asked: Path) -> None:
    result = cli("train", "--labels", str(gold), "--init", str(reranker), "--out", "m")
    assert result.exit_code == 0
    assert "POSOLOGY_COMPRESSOR_MODEL=provence=m" in result.stderr
    with StubProvider(lambda _: replying()) as stub:
        told = cli(
            "label", "--questions", str(asked), "--model", MODEL, "--out", "l.jsonl", stub=stub
        )
    assert "10 calls to make" in told.stderr
    assert "line 2" in told.stderr
    assert re.search(r"\d labels, \d of them without an answer", told.stderr)
