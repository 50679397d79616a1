"""Vectors that are bought, from the command line and through workers, to the last entry of the ledger."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from anyio.from_thread import start_blocking_portal
from typer.testing import CliRunner, Result

from orchestrator.cli.app import app
from orchestrator.jobs.store import JobStore, open_store
from orchestrator.question.request import JobRequest
from orchestrator.settings import Settings
from orchestrator.stack.folder import StackInfo
from orchestrator.stack.options import StackOptions
from orchestrator.stack.up import running_stack
from posology.budget.books.audit import Audit, Auditor
from posology.index.store import Index
from posology.published.jobs import JobOutput
from posology.store.keys import DEFAULT_TENANT
from posology.testing import Faults, LoadStub, Recorded, Reply, StubProvider, Vectors
from posology.testing.provider.echo import echo
from posology.types import JobState, Outcome, Stage
from tests.support.holders import holder

pytestmark = pytest.mark.timeout(300)

NAME = "openai:text-embedding-3-small@64"
MODEL = "openai:gpt-4o-mini"
RUNNER = CliRunner()
TOPICS = ("stroke", "asthma", "migraine", "gout", "sepsis")
QUESTION = "Did aspirin lower the risk of gout?"


def _corpus(path: Path) -> Path:
    rows = [
        {
            "id": f"t:{topic}:{n}",
            "title": f"Aspirin and {topic}",
            "text": f"Aspirin lowered the risk of {topic} in group {n}. The dose was {n} mg.",
        }
        for topic in TOPICS
        for n in range(4)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _answer(request: Recorded) -> Reply | Vectors:
    return Vectors() if request.path.endswith("/embeddings") else Reply(text=echo)


class Clinic:
    """One user's folder, and a provider."""

    def __init__(self, folder: Path, stub: StubProvider) -> None:
        self.folder, self.stub = folder, stub
        self.corpus = _corpus(folder / "rows.jsonl")

    def __call__(self, *arguments: str, **more: str) -> Result:
        environment = {
            "POSOLOGY_INDEX": str(self.folder / "index"),
            "POSOLOGY_EMBEDDER": NAME,
            "POSOLOGY_HOME": str(self.folder / "home"),
            "OPENAI_API_KEY": "sk-test",
            "OPENAI_BASE_URL": self.stub.openai_url,
        }
        return RUNNER.invoke(app, list(arguments), env={**environment, **more})

    @property
    def sent(self) -> list[str]:
        """All texts that were embedded."""
        return [
            text for one in self.stub.requests if "input" in one.json for text in one.json["input"]
        ]


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[Clinic]:
    with StubProvider(_answer) as stub:
        yield Clinic(tmp_path, stub)


@pytest.fixture
def filled(clinic: Clinic) -> Clinic:
    """With its literature in the index."""
    _json(clinic("ingest", str(clinic.corpus), "--json"))
    return clinic


def _json(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    out: dict[str, Any] = json.loads(result.stdout)
    return out


def test_an_ingest_says_what_it_will_cost_and_buys_each_text_once(clinic: Clinic) -> None:
    told = clinic("ingest", str(clinic.corpus), "--dry-run", "--max-cost", "0.01")
    assert told.exit_code == 0, told.output
    assert "20 new or changed passages" in told.stderr
    assert "--max-cost: $0.0100: covers the worst case" in told.stderr
    assert clinic.stub.requests == ()
    out = _json(clinic("ingest", str(clinic.corpus), "--json"))
    assert out["written"] == 20
    # sentences about doses are the same under every topic
    assert len(clinic.sent) == len(set(clinic.sent)) == 20 + 20 + 4
    words = sum(len(text.split()) + 2 for text in clinic.sent)
    assert Decimal(out["spent_usd"]) == Decimal("0.02") * words / 1_000_000
    index = Index.open(str(clinic.folder / "index"))
    assert (index.meta.embedder, index.meta.dim) == ("openai:text-embedding-3-small:64", 64)
    (found,) = index.view().fetch(["t:gout:0"])
    assert np.linalg.norm(found.vector) == pytest.approx(1, abs=1e-5)
    # another index of the same literature costs nothing more
    again = _json(
        clinic("ingest", str(clinic.corpus), "--json", "--index", str(clinic.folder / "other"))
    )
    assert (again["written"], Decimal(again["spent_usd"])) == (20, Decimal(0))
    free = clinic("ingest", str(clinic.corpus), "--dry-run", "--index", str(clinic.folder / "x"))
    assert "no cost" in free.stderr


def test_vectors_that_are_given_are_not_bought(clinic: Clinic) -> None:
    file = clinic.folder / "vectors.npy"
    np.save(file, np.eye(20, 64, dtype=np.float32))
    given = ("ingest", str(clinic.corpus), "--vectors", str(file))
    told = clinic(*given, "--dry-run")
    out = _json(clinic(*given, "--json"))
    assert len(clinic.sent) == len(set(clinic.sent)) == 20 + 4
    words = sum(len(text.split()) + 2 for text in clinic.sent)
    assert Decimal(out["spent_usd"]) == Decimal("0.02") * words / 1_000_000
    assert "1 call to" in told.stderr
    found = Index.open(str(clinic.folder / "index")).view().fetch(["t:stroke:0", "t:gout:0"])
    assert [int(one.vector.argmax()) for one in found] == [0, 12]
    assert all(one.sentence_vectors.any(axis=1).all() for one in found)


def test_a_cap_that_is_spent_ends_an_ingest_which_goes_on_where_it_ended(clinic: Clinic) -> None:
    result = clinic("ingest", str(clinic.corpus), "--max-cost", "0.000001")
    assert result.exit_code != 0
    assert clinic.stub.requests == ()
    assert "0.000001" in result.stderr
    assert _json(clinic("ingest", str(clinic.corpus), "--json"))["written"] == 20


def test_a_question_is_embedded_by_whoever_asks_it_and_once(filled: Clinic) -> None:
    clinic = filled
    before = len(clinic.stub.requests)
    first = _json(clinic("ask", QUESTION, "--model", MODEL, "--json"))
    stages = [one["stage"] for one in first["spending"]["attempts"]]
    assert stages[0] == Stage.EMBED
    assert Stage.ANSWER in stages
    assert first["evidence"][0]["passage"]["id"].startswith("t:gout")
    (embedded, *_) = first["spending"]["attempts"]
    assert Decimal(embedded["cost"]) > 0
    assert clinic.sent[-1] == QUESTION
    # the same question needs no second vector, and a search none of its own
    second = _json(clinic("ask", QUESTION, "--model", MODEL, "--json"))
    assert [one["stage"] for one in second["spending"]["attempts"]] == stages[1:]
    found = _json(clinic("search", QUESTION, "--json"))
    assert found["hits"][0]["passage"]["id"].startswith("t:gout")
    assert len(clinic.stub.requests) == before + 2 * len(stages) - 1
    other = _json(clinic("search", "asthma", "--json", "--mode", "dense"))
    assert other["hits"][0]["passage"]["id"].startswith("t:asthma")
    assert clinic.sent[-1] == "asthma"


def test_a_cap_holds_for_the_questions_vector_too(filled: Clinic) -> None:
    clinic = filled
    before = len(clinic.stub.requests)
    result = clinic("ask", QUESTION, "--model", MODEL, "--json", "--max-cost", "0.0000001")
    assert result.exit_code != 0
    assert json.loads(result.stdout)["error"]["type"] == "BudgetExhausted"
    assert len(clinic.stub.requests) == before


def test_a_model_without_a_price_is_refused_before_anything_is_read(clinic: Clinic) -> None:
    result = clinic("ingest", str(clinic.corpus), "--embedder", "openai:nobody/knows=64", "--json")
    assert json.loads(result.stdout)["error"]["type"] == "UnpricedModel"
    assert clinic.stub.requests == ()
    assert not (clinic.folder / "index").exists()


@contextmanager
def _workers(clinic: Clinic, stub: LoadStub, count: int) -> Iterator[StackInfo]:
    overrides = {
        "POSOLOGY_EMBEDDER": NAME,
        "OPENAI_API_KEY": "sk-test",
        "OPENAI_BASE_URL": stub.openai_url,
        "POSOLOGY_ATTEMPTS": "8",
        "POSOLOGY_LEASE": "8",
        "POSOLOGY_MEMORY": str(clinic.folder / "worker.sqlite"),
    }
    options = StackOptions(
        environment=os.environ,
        folder=clinic.folder / "stack",
        workers=count,
        concurrency=8,
        api=False,
        index=str(clinic.folder / "index"),
        overrides=overrides,
    )
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(running_stack(options)) as info,
    ):
        yield info


async def _submit(store: JobStore) -> list[str]:
    jobs = []
    for topic in TOPICS:
        question = f"Did aspirin lower the risk of {topic}?"
        asked = {"question": question, "model": MODEL, "k": 4}
        request = JobRequest.model_validate(asked).settled(Settings())
        jobs.append((await store.submit(request)).job)
    return jobs


def _check(done: list[JobOutput], ledger: list[dict[str, Any]], audit: Audit) -> None:
    for topic, job in zip(TOPICS, done, strict=True):
        assert job.state is JobState.SUCCEEDED, job.error
        embedded = [a for a in job.spending.attempts if a.stage is Stage.EMBED]
        assert [a.outcome for a in embedded].count(Outcome.OK) == 1
        assert job.result is not None
        assert job.result.evidence[0].passage.id.startswith(f"t:{topic}")
    assert (audit.right, audit.open) == (True, 0)
    # every request that the provider had is an entry, and none is another's
    sent = {entry["client_id"] for entry in ledger}
    assert sent <= {a.id for job in done for a in job.spending.attempts}
    assert {entry["client_id"] for entry in ledger if entry["finished"]} <= sent


@pytest.mark.slow
@pytest.mark.anyio
async def test_jobs_pay_for_their_vectors_and_the_books_agree(filled: Clinic) -> None:
    faults = Faults(latency=(0.05, 0.2), rate_limited=0.1, errors=0.05)
    with LoadStub(faults, seed=3) as stub, _workers(filled, stub, 1) as info:
        async with open_store(info.redis_url) as store:
            done = [await store.wait(job) for job in await _submit(store)]
            audit = await Auditor(store.redis, store.url, DEFAULT_TENANT).verify()
        ledger = stub.ledger()
    _check(done, ledger, audit)
    assert audit.unknown == 0
    assert len(ledger) == sum(len(job.spending.attempts) for job in done)


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_vector_is_not_bought_again_after_its_worker_was_killed(filled: Clinic) -> None:
    with LoadStub(Faults(latency=(4.0, 4.0))) as stub, _workers(filled, stub, 2) as info:
        async with open_store(info.redis_url) as store:
            jobs = await _submit(store)
            with anyio.fail_after(90):
                # all vectors are there, and the answers are on their way
                while stub.stats()["requests"] < 2 * len(jobs):  # noqa: ASYNC110 - it is another process
                    await anyio.sleep(0.02)
            os.kill(await holder(store, jobs[0]), signal.SIGKILL)
            done = [await store.wait(job) for job in jobs]
            audit = await Auditor(store.redis, store.url, DEFAULT_TENANT).verify()
        ledger = stub.ledger()
    _check(done, ledger, audit)
    assert any(job.losses for job in done), "the killed worker held some"
    assert all(
        a.stage is not Stage.EMBED
        for job in done
        for a in job.spending.attempts
        if a.outcome is Outcome.LOST
    )


def test_an_estimate_spends_nothing_and_counts_the_questions_vector(filled: Clinic) -> None:
    clinic = filled
    questions = clinic.folder / "questions.jsonl"
    questions.write_text(json.dumps({"question": QUESTION}) + "\n", encoding="utf-8")
    # by words, so that the same passages are found without the vector
    asked = ("--model", MODEL, "--strategy", "direct", "--mode", "bm25", "--json")
    arguments = ("estimate", str(questions), *asked)
    before = len(clinic.stub.requests)
    (first,) = _json(clinic(*arguments))["totals"]
    assert len(clinic.stub.requests) == before
    _json(clinic("search", QUESTION, "--json"))
    (second,) = _json(clinic(*arguments))["totals"]
    assert first["calls"] == second["calls"] + 1
    assert Decimal(first["worst_usd"]) > Decimal(second["worst_usd"])


@pytest.mark.parametrize("mode", ["fused", "dense", "dense>bm25"])
def test_an_estimate_counts_passages_that_only_the_vector_would_find(
    filled: Clinic, mode: str
) -> None:
    clinic = filled
    question = "Was kommt heraus?"
    questions = clinic.folder / "questions.jsonl"
    questions.write_text(json.dumps({"question": question}) + "\n", encoding="utf-8")
    asked = ("--model", MODEL, "--strategy", "direct", "--mode", mode, "--k", "4", "--json")
    arguments = ("estimate", str(questions), *asked)
    (first,) = _json(clinic(*arguments))["totals"]
    _json(clinic("search", question, "--json"))
    (second,) = _json(clinic(*arguments))["totals"]
    assert first["calls"] == second["calls"] + 1 == 2
    # passages here are of about one length
    assert Decimal(first["worst_usd"]) > Decimal(second["worst_usd"]) * Decimal("0.95")


def test_ctrl_c_cancels_calls_before_their_connections_are_closed(clinic: Clinic) -> None:
    def answer(_: Recorded) -> Vectors:
        os.kill(os.getpid(), signal.SIGINT)
        return Vectors(latency=5)

    with StubProvider(answer) as slow:
        result = clinic("ingest", str(clinic.corpus), OPENAI_BASE_URL=slow.openai_url)
    assert result.exit_code != 0
    assert "call 1 attempt 1: cancelled" in result.stderr
    assert "Unreachable" not in result.output
    assert _json(clinic("ingest", str(clinic.corpus), "--json"))["written"] == 20


def test_what_must_not_spend_says_how_a_vector_is_bought(filled: Clinic) -> None:
    clinic = filled
    questions = clinic.folder / "questions.jsonl"
    questions.write_text(json.dumps({"question": "Is gout cured?"}) + "\n", encoding="utf-8")
    sides = ("direct", "router", "--questions", str(questions))
    arguments = ("policy", "compare", *sides, "--model", MODEL, "--json")
    result = clinic(*arguments)
    assert result.exit_code != 0
    assert "posology search" in json.loads(result.stdout)["error"]["message"]
    _json(clinic("search", "Is gout cured?", "--json"))
    _json(clinic(*arguments))
