"""``posology fetch`` and ``posology ask --live`` against the stub services."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from redis.asyncio import Redis
from typer.testing import CliRunner

from orchestrator.cli.app import app
from orchestrator.ingest.live.request import FetchRequest, fetch_id
from posology.corpus.live.fetch import FILES
from posology.errors import FetchFailed, InputError, InvalidQuery
from posology.store.bucket import Bucket
from posology.testing.literature.articles import many
from posology.testing.literature.stub import LiteratureStub

CLI = CliRunner()
QUESTION = "Does aspirin reduce stroke in adults?"
HOUR = 60 * 60 * 1_000


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSOLOGY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("POSOLOGY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("POSOLOGY_EMBEDDER_BACKEND", "torch")
    monkeypatch.setenv("POSOLOGY_EMAIL", "a@example.org")


@pytest.fixture
def stub(given: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiteratureStub]:
    served = LiteratureStub(faults={2: "429"})
    with serving(served, monkeypatch):
        yield served


def serving(stub: LiteratureStub, monkeypatch: pytest.MonkeyPatch) -> Serving:
    return Serving(stub, monkeypatch)


class Serving:
    """A stub at the configured addresses."""

    def __init__(self, stub: LiteratureStub, monkeypatch: pytest.MonkeyPatch) -> None:
        self._stub = stub.serving()
        self._monkeypatch = monkeypatch

    def __enter__(self) -> str:
        url = self._stub.__enter__()
        self._monkeypatch.setenv("POSOLOGY_EUTILS_URL", f"{url}/eutils/")
        self._monkeypatch.setenv("POSOLOGY_EUROPEPMC_URL", f"{url}/europepmc")
        self._monkeypatch.setenv("POSOLOGY_CLINICALTRIALS_URL", f"{url}/clinicaltrials")
        self._monkeypatch.setenv("POSOLOGY_UNPAYWALL_URL", f"{url}/unpaywall")
        return url

    def __exit__(self, *_: object) -> None:
        self._stub.__exit__(None, None, None)


@pytest.mark.parametrize("service", ["pubmed", "europepmc"])
def test_a_question_is_answered_without_a_corpus(
    stub: LiteratureStub, tmp_path: Path, service: str
) -> None:
    done = CLI.invoke(app, ["ask", QUESTION, "--live", "--service", service, "--json"])
    assert done.exit_code == 0, done.output
    out = json.loads(done.stdout)
    assert out["status"] == "answered"
    quotes = " ".join(one["quote"] for one in out["evidence"])
    assert "12% to 8%" in quotes
    # the retracted trial is fetched and is no evidence
    assert "prevented every stroke" not in quotes
    fetch = out["fetch"]
    assert (fetch["service"], fetch["question"]) == (service, QUESTION)
    assert (fetch["query"], fetch["records"]) == ("aspirin AND stroke", 5)
    assert fetch["notes"] == ["`aspirin AND stroke AND adults` finds 3."]
    assert out["notes"][0].startswith(f"Fetched from {service} for `{fetch['query']}`")
    assert stub.paths(status=429)
    assert all(one.form["email"] == "a@example.org" for one in stub.seen)
    kept = json.loads((tmp_path / "home" / "live" / fetch["id"] / "fetch.json").read_text())
    assert kept == fetch
    # the same day, the same question asks the service for nothing
    sent = len(stub.seen)
    again = CLI.invoke(app, ["ask", QUESTION, "--live", "--service", service, "--json"])
    assert json.loads(again.stdout)["evidence"] == out["evidence"]
    assert json.loads(again.stdout)["fetch"] == fetch
    assert len(stub.seen) == sent


def test_a_policy_that_may_search_again_has_wider_queries_sent(stub: LiteratureStub) -> None:
    near = many(15)
    far = (replace(one, abstract="Stubazole thinned blood.") for one in near[12:])
    stub._articles |= {one.pmid: one for one in (*near, *far)}
    ask = ["ask", "Does stubazole lower blood pressure in adults?", "--live", "--json"]
    plain = json.loads(CLI.invoke(app, ask).stdout)["fetch"]
    assert (plain["wider"], plain["records"]) == ([], 12)
    done = CLI.invoke(app, [*ask, "--policy", "router:escalate=search"])
    assert done.exit_code in (0, 1), done.output
    out = json.loads(done.stdout)
    assert out["fetch"]["query"] == plain["query"]
    assert (out["fetch"]["records"], out["fetch"]["found"]) == (15, 15)
    assert "wider quer" in out["notes"][0]


def test_the_query_is_shown_and_can_be_given(stub: LiteratureStub) -> None:
    done = CLI.invoke(app, ["ask", QUESTION, "--live", "--query", "clopidogrel", "--max", "5"])
    assert done.exit_code == 0, done.output
    assert "pubmed: clopidogrel" in done.stderr
    assert "fetched 1 of 1 records" in done.stderr
    assert "Fetched from pubmed for `clopidogrel`" in done.stdout


def test_records_go_into_an_index_of_their_own_or_a_named_one(
    stub: LiteratureStub, tmp_path: Path
) -> None:
    done = CLI.invoke(app, ["fetch", "aspirin AND stroke", "--full-text"])
    assert done.exit_code == 0, done.output
    (folder,) = (tmp_path / "home" / "live").iterdir()
    whole = "How many adults had recurrent stroke at three years?"
    asked = CLI.invoke(app, ["ask", whole, str(folder / FILES), "--json"])
    assert "96 of 1,200" in json.loads(asked.stdout)["evidence"][0]["quote"]
    index = tmp_path / "index"
    done = CLI.invoke(app, ["fetch", "90000006", "90000001", "--index", str(index), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["records"] == 2
    shown = CLI.invoke(app, ["show", "pmid:90000006", "--index", str(index)])
    assert "restored ovulation" in shown.stdout


def test_a_copy_of_a_fetch_answers_as_the_fetch_did(
    given: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(LiteratureStub(), monkeypatch):
        done = CLI.invoke(app, ["ask", QUESTION, "--live", "--json"])
    assert done.exit_code == 0, done.output
    before = json.loads(done.stdout)
    kept = tmp_path / "kept"
    (tmp_path / "home" / "live" / before["fetch"]["id"]).rename(kept)
    # neither the service nor the index of then is there any more
    monkeypatch.setenv("POSOLOGY_CACHE", str(tmp_path / "another cache"))
    again = CLI.invoke(app, ["ask", QUESTION, str(kept / FILES), "--json"])
    assert again.exit_code == 0, again.output
    after = json.loads(again.stdout)
    for name in ("answer", "evidence", "retrieved"):
        assert after[name] == before[name]
    assert json.loads((kept / "fetch.json").read_text()) == before["fetch"]
    for file in before["fetch"]["files"]:
        content = (kept / FILES / file["name"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == file["sha256"]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["ask", "What of walruses?", "--live"], InputError.exit_code, "has no record"),
        (["ask", QUESTION, "--live", "--query", " "], InvalidQuery.exit_code, "query is empty"),
        (["ask", QUESTION, "--live", "--index", "x"], 2, "--live excludes"),
        (["ask", QUESTION, "--max", "5"], 2, "need --live"),
        (["fetch", "aspirin", "--service", "medline"], InvalidQuery.exit_code, "service"),
        (["fetch", "aspirin", "--max", "0"], InvalidQuery.exit_code, "max_records"),
    ],
)
def test_what_cannot_be_fetched_is_said(
    stub: LiteratureStub, arguments: list[str], status: int, said: str
) -> None:
    done = CLI.invoke(app, arguments)
    assert done.exit_code == status, done.output
    assert said in done.output


def test_a_service_out_of_reach_is_named(given: None, monkeypatch: pytest.MonkeyPatch) -> None:
    stub = LiteratureStub(faults={1: "redirect"})
    with serving(stub, monkeypatch):
        done = CLI.invoke(app, ["fetch", "aspirin"])
    assert done.exit_code == FetchFailed.exit_code
    assert "redirects to elsewhere.example" in done.stderr


def test_study_records_are_fetched_and_their_numbers_quoted(stub: LiteratureStub) -> None:
    done = CLI.invoke(app, ["fetch", "nct90000001", "NCT90000002", "--json"])
    assert done.exit_code == 0, done.output
    fetch = json.loads(done.stdout)
    assert (fetch["service"], fetch["records"], fetch["query"]) == ("clinicaltrials", 2, None)
    question = "What was the change in serum urate with stubazole?"
    asked = CLI.invoke(app, ["ask", question, "--live", "--service", "clinicaltrials", "--json"])
    assert asked.exit_code == 0, asked.output
    out = json.loads(asked.stdout)
    assert any("Stubazole 20 mg: -2.4 (1.1)" in one["quote"] for one in out["evidence"])
    why = ["ask", "Why was the study of high-dose stubazole stopped?", "--live", "--service"]
    told = CLI.invoke(app, [*why, "clinicaltrials", "--query", "stubazole AND dose"])
    assert "TRIAL TERMINATED (own record)" in told.stdout
    assert "Slow accrual" in told.stdout
    # the email goes to those alone who ask for it
    assert not any("email" in one.form for one in stub.seen if one.path == "studies")


def test_full_texts_are_looked_for_and_missing_ones_say_why(stub: LiteratureStub) -> None:
    done = CLI.invoke(app, ["fetch", "aspirin AND stroke", "--full-text"])
    assert done.exit_code == 0, done.output
    lines = [line for line in done.stderr.splitlines() if line.startswith("no full text")]
    assert [line.partition(":")[0] for line in lines] == ["no full text of pmid"] * 3
    assert "https://repository.example/stub/90000004.pdf" in done.stderr


def test_articles_that_cite_others_are_fetched(stub: LiteratureStub) -> None:
    done = CLI.invoke(app, ["fetch", "90000001", "--links", "cited_by", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["records"] == 1
    for wrong in (["aspirin", "--links", "related"], ["90000001", "--links", "x"],
                  ["NCT90000001", "--full-text"], ["90000001", "--links", "related", "--service", "europepmc"]):  # fmt: skip
        assert CLI.invoke(app, ["fetch", *wrong]).exit_code == 3, wrong


def test_doctor_tries_the_services_and_says_what_failed(
    given: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = LiteratureStub(faults={4: "redirect"}, per_second=None)
    with serving(stub, monkeypatch):
        done = CLI.invoke(app, ["doctor", "--live", "--json"])
    checks = {one["name"]: one for one in json.loads(done.stdout)["checks"]}
    assert checks["pubmed"]["ok"], checks
    assert "1 of 5 records" in checks["pubmed"]["found"]
    assert not checks["europepmc"]["ok"]
    assert "elsewhere.example" in checks["europepmc"]["found"]
    assert "POSOLOGY_EUROPEPMC_URL" in checks["europepmc"]["remedy"]
    assert "1 of 1 records" in checks["clinicaltrials"]["found"], checks
    assert checks["unpaywall"]["ok"], checks
    assert done.exit_code == 4


def test_a_killed_fetch_resumes_without_what_is_there(
    given: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_encoder: Path
) -> None:
    monkeypatch.setenv("POSOLOGY_EMBEDDER", str(tiny_encoder))
    monkeypatch.setenv("POSOLOGY_TOKEN_CODES", "false")
    third, killed = threading.Event(), threading.Event()

    def reached(path: str, form: Mapping[str, str]) -> None:
        if form.get("retstart") == "400" and not killed.is_set():
            third.set()
            killed.wait(90)

    stub = LiteratureStub(many(450), per_second=None, reached=reached)
    command = ["fetch", "stubazole", "--max", "450", "--json"]
    with serving(stub, monkeypatch):
        program = "from orchestrator.cli.app import main; main()"
        with subprocess.Popen([sys.executable, "-c", program, *command]) as child:
            try:
                assert third.wait(90)
            finally:
                child.kill()
                child.wait()
                killed.set()
        done = CLI.invoke(app, command)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["records"], len(found["files"])) == (450, 3)
    starts = [one.form["retstart"] for one in stub.seen if one.path == "efetch.fcgi"]
    assert starts.count("0") == starts.count("200") == 1
    assert len([one for one in stub.seen if one.path == "esearch.fcgi"]) == 1


def test_a_days_fetch_has_one_id() -> None:
    asked = FetchRequest.parse({"query": "aspirin"}).asked()
    day = datetime(2026, 1, 15, tzinfo=UTC)
    assert fetch_id(asked, day) == fetch_id(asked, day.replace(hour=23))
    assert fetch_id(asked, day) != fetch_id(asked, day.replace(day=16))
    other = FetchRequest.parse({"query": "aspirin", "full_text": True}).asked()
    assert fetch_id(asked, day) != fetch_id(other, day)


@pytest.mark.anyio
async def test_processes_share_one_pace(redis: Redis, redis_url: str) -> None:
    now = HOUR
    first, second = (
        Bucket(redis, redis_url, key="posology:pace:test", seconds=0.35, clock=lambda: now)
        for _ in range(2)
    )
    waits = [await bucket.take() for bucket in (first, second, first)]
    assert waits == pytest.approx([0.0, 0.35, 0.7])
    now += 10_000
    assert await second.take() == 0.0


@pytest.mark.anyio
async def test_a_clock_that_is_put_back_stops_no_pace(redis: Redis, redis_url: str) -> None:
    now = 2 * HOUR
    bucket = Bucket(redis, redis_url, key="posology:pace:back", seconds=0.5, clock=lambda: now)
    assert [await bucket.take() for _ in range(2)] == pytest.approx([0.0, 0.5])
    now -= HOUR
    assert await bucket.take() == pytest.approx(1.0)


@pytest.mark.anyio
async def test_a_bucket_that_is_empty_gives_nothing(redis: Redis, redis_url: str) -> None:
    now = HOUR
    bucket = Bucket(
        redis, redis_url, key="posology:{t}:fetches", seconds=60, size=3, clock=lambda: now
    )
    assert [await bucket.try_take() for _ in range(3)] == [0.0, 0.0, 0.0]
    assert await bucket.try_take() == pytest.approx(60.0)
    assert await bucket.try_take() == pytest.approx(60.0)
    now += 60_000
    assert await bucket.try_take() == 0.0
    assert await bucket.try_take() == pytest.approx(60.0)
