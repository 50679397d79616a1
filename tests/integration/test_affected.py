"""A second source of retractions, and stored answers whose evidence has changed since."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import httpx2
import jsonschema
import pytest
from typer.testing import CliRunner

from orchestrator.api.app import create_app
from orchestrator.cli.app import app as command
from orchestrator.ingest.notices import take_notices
from orchestrator.jobs.affected import affected
from orchestrator.jobs.store import JobStore, open_store
from orchestrator.question.request import JobRequest
from orchestrator.settings import Settings
from posology.client import Client
from posology.corpus.items import NoticeKind
from posology.errors import BadFile, SyncRefused
from posology.index.schema import Row, digest
from posology.index.store import Index
from posology.published.affected import AffectedPage, ChangeKind
from posology.published.answers import AskOutput, Evidence, Source, Status
from posology.store import keys
from posology.testing.models.embedder import HashEmbedder
from posology.text.sentences import split
from posology.types import Flag, FlagKind, Passage
from posology.types.flags import NOTICE, OWN
from tests.integration.conftest import _refusal
from tests.support.retraction_watch import row, write

pytestmark = pytest.mark.anyio
SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schema"
RW = "retraction-watch"
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
EMBEDDER = HashEmbedder(dim=16)
ASPIRIN = Passage(id="pmid:1", pmid="1", title="Aspirin", text="Aspirin lowered risk. It was safe.")
STATIN = Passage(id="x:2", doi="10.1000/abc", title="Statins", text="Statins lowered cholesterol.")
OTHER = Passage(id="pmid:3", pmid="3", text="Something else.")


def put(index: Index, *passages: Passage) -> None:
    sentences = [split(passage.text) for passage in passages]
    encoded = EMBEDDER.embed_passages(passages, sentences)
    index.upsert(
        [
            Row(passage=p, sentences=s, encoded=e, digest=digest(p))
            for p, s, e in zip(passages, sentences, encoded, strict=True)
        ]
    )


def found(index: Index, name: str) -> Passage:
    return Index.open(index.uri).view().fetch([name])[0].passage


@pytest.fixture
def index(tmp_path: Path) -> Index:
    made = Index.create(tmp_path / "index", EMBEDDER.name, EMBEDDER.dim)
    put(made, ASPIRIN, STATIN, OTHER)
    return made


def test_a_file_flags_passages_by_pmid_and_doi_once(index: Index, tmp_path: Path) -> None:
    file = write(
        tmp_path / "rw.csv",
        row(RetractionPubMedID="99"),
        row(
            RetractionNature="Correction", OriginalPaperPubMedID="0",
            OriginalPaperDOI="https://doi.org/10.1000/ABC",
        ),
        row(OriginalPaperPubMedID="0"),
        row(RetractionNature="?"),
    )  # fmt: skip
    before = index.view().number
    report = take_notices(file, index)
    assert (report.changed, report.unidentified, report.bad) == (2, 1, 1)
    assert Index.open(index.uri).view().number > before
    aspirin = found(index, "pmid:1")
    assert (aspirin.retracted, aspirin.concern) == (True, False)
    retraction = Flag(kind=FlagKind.RETRACTION, source=RW, by="pmid:99", date="2020-05-01")
    assert aspirin.flags == (retraction,)
    assert [flag.kind for flag in found(index, "x:2").flags] == [FlagKind.CORRECTION]
    assert not found(index, "x:2").retracted
    assert found(index, "pmid:3") == OTHER
    # what comes later is flagged as it is written
    put(index, Passage(id="late", pmid="1", text="A late copy."))
    assert found(index, "late").flags == (retraction,)
    now = Index.open(index.uri).view().number
    again = take_notices(file, Index.open(index.uri))
    assert again.known
    assert Index.open(index.uri).view().number == now


def test_a_reinstatement_undoes_retractions_of_its_own_source_alone(
    index: Index, tmp_path: Path
) -> None:
    put(index, Passage(id="pmid:5", pmid="5", text="Doubted.", retracted=True))
    back = {"RetractionNature": "Reinstatement", "RetractionDate": "6/1/2021 0:00"}
    later = row(OriginalPaperPubMedID="3", RetractionDate="7/1/2022 0:00")
    file = write(
        tmp_path / "rw.csv",
        row(), row(**back),
        row(OriginalPaperPubMedID="5"), row(**back, OriginalPaperPubMedID="5"),
        row(**back, OriginalPaperPubMedID="3"), later,
    )  # fmt: skip
    take_notices(file, index)
    assert not found(index, "pmid:1").retracted
    assert [flag.kind for flag in found(index, "pmid:1").flags] == [FlagKind.REINSTATEMENT]
    assert found(index, "pmid:5").retracted
    assert [(flag.source, flag.kind) for flag in found(index, "pmid:5").flags] == [
        (OWN, FlagKind.RETRACTION),
        (RW, FlagKind.REINSTATEMENT),
    ]
    assert found(index, "pmid:3").retracted


def test_a_newer_file_withdraws_and_notices_of_records_stay(index: Index, tmp_path: Path) -> None:
    index.warn({"pmid:9": {"pmid:1": {NoticeKind.RETRACTION}}})
    rows = [row(OriginalPaperPubMedID=str(number)) for number in (1, 3)]
    take_notices(write(tmp_path / "rw.csv", *rows), index)
    assert {flag.source for flag in found(index, "pmid:1").flags} == {NOTICE, RW}
    shorter = write(tmp_path / "new.csv", row(OriginalPaperPubMedID="999"))
    with pytest.raises(SyncRefused, match="lacks 2 of the 2 reports"):
        take_notices(shorter, index)
    report = take_notices(shorter, index, allow_removals=True)
    assert (report.withdrawn, report.changed) == (2, 2)
    assert [flag.source for flag in found(index, "pmid:1").flags] == [NOTICE]
    assert found(index, "pmid:3").flags == ()
    broken = tmp_path / "broken.csv"
    broken.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(BadFile):
        take_notices(broken, index, allow_removals=True)


def test_readers_see_a_file_whole_and_the_next_run_completes_what_broke_off(
    index: Index, tmp_path: Path
) -> None:
    class Crash(Exception):
        pass

    file = write(tmp_path / "rw.csv", row())
    with suppress(Crash), index.staged():
        take_notices(file, index)
        raise Crash
    assert not found(index, "pmid:1").retracted
    take_notices(file, Index.open(index.uri))
    assert found(index, "pmid:1").retracted


def answer(question: str, index: Index, *quotes: tuple[Passage, str]) -> dict[str, Any]:
    evidence = []
    for passage, quote in quotes:
        start = passage.text.index(quote)
        evidence.append(
            Evidence(
                passage=Source.of(passage), start=start, end=start + len(quote), quote=quote,
                context_start=start, context=quote,
            )
        )  # fmt: skip
    known = AskOutput.model_validate(_refusal(question))
    change = {
        "status": Status.ANSWERED, "answer": "Yes.", "refusal": None, "evidence": tuple(evidence),
        "index": index.view().version,
    }  # fmt: skip
    found: dict[str, Any] = json.loads(known.model_copy(update=change).model_dump_json())
    return found


async def answered(store: JobStore, tenant: str, index: Index, *quotes: tuple[Passage, str]) -> str:
    request = JobRequest(question="Does it help?").settled(Settings())
    job = (await store.submit(request, tenant=tenant)).job
    prefix = keys.prefix(tenant)
    assert await store.run("take", prefix)
    _, token, *_ = await store.run("claim", prefix, job, "answer", job, "test", 15_000)
    payload = json.dumps(answer("Does it help?", index, *quotes))
    await store.run("conclude", prefix, job, "answer", token, "succeeded", payload)
    return job


async def check(store: JobStore, index: Index, tenant: str, **more: Any) -> AffectedPage:
    return await affected(store, Index.open(index.uri), tenant=tenant, since=EPOCH, **more)


async def test_answers_are_affected_by_what_changed_since(
    store: JobStore, index: Index, tenant: str, tmp_path: Path
) -> None:
    first, second = (ASPIRIN, "Aspirin lowered risk."), (ASPIRIN, "It was safe.")
    job = await answered(store, tenant, index, first, second, (STATIN, "Statins lowered"))
    await answered(store, tenant, index, (OTHER, "Something else."))
    assert (await check(store, index, tenant)).answers == ()
    take_notices(write(tmp_path / "rw.csv", row()), index)
    put(index, Passage(id="pmid:1", pmid="1", title="Aspirin", text="Aspirin lowered risk."))
    index.delete(["x:2"])
    page = await check(store, index, tenant)
    (one,) = page.answers
    assert (one.job, page.checked, page.next) == (job, 2, None)
    retracted, replaced, removed = one.changes
    assert (retracted.kind, retracted.source, retracted.date) == (
        ChangeKind.RETRACTED, RW, "2020-05-01",
    )  # fmt: skip
    assert replaced.kind is ChangeKind.REPLACED
    assert replaced.standing_quotes == ("Aspirin lowered risk.",)
    assert replaced.lost_quotes == ("It was safe.",)
    assert (removed.kind, removed.passage) == (ChangeKind.REMOVED, "x:2")
    versions = [one.version for one in one.changes]
    assert len(set(versions)) == 3
    assert removed.version == Index.open(index.uri).view().version
    assert removed.published is not None
    # an answer that knew of it is not affected by it
    await answered(store, tenant, index, (found(index, "pmid:1"), "Aspirin lowered risk."))
    assert [one.job for one in (await check(store, index, tenant)).answers] == [job]
    assert (await check(store, index, f"{tenant}x")).checked == 0


async def test_an_expired_version_leaves_the_quotes_to_compare(
    store: JobStore, index: Index, tenant: str
) -> None:
    job = await answered(store, tenant, index, (ASPIRIN, "It was safe."))
    kept = await answered(store, tenant, index, (OTHER, "Something else."))
    prefix = keys.prefix(tenant)
    for name in (job, kept):
        # a version that is not there
        raw = json.loads(str(await store.redis.hget(f"{prefix}job:{name}", "result")))
        raw["index"] = f"{index.name}@1000000"
        await store.redis.hset(f"{prefix}job:{name}", "result", json.dumps(raw))
    put(index, Passage(id="pmid:1", pmid="1", title="Aspirin", text="Aspirin lowered risk."))
    (one,) = (await check(store, index, tenant)).answers
    assert (one.job, [change.kind for change in one.changes]) == (job, [ChangeKind.REPLACED])
    assert one.changes[0].lost_quotes == ("It was safe.",)


async def test_each_change_is_an_event_once(
    store: JobStore, index: Index, tenant: str, tmp_path: Path
) -> None:
    job = await answered(store, tenant, index, (ASPIRIN, "It was safe."))
    before = [event async for event in store.events(job, tenant=tenant)]
    take_notices(write(tmp_path / "rw.csv", row()), index)
    assert (await check(store, index, tenant, notify=True)).notified == 1
    assert (await check(store, index, tenant, notify=True)).notified == 0
    index.delete(["pmid:1"])
    assert (await check(store, index, tenant, notify=True)).notified == 1
    news = [event async for event in store.events(job, tenant=tenant, after=before[-1].id)]
    assert [(event.type, event.data["kind"]) for event in news] == [
        ("evidence_changed", "retracted"),
        ("evidence_changed", "removed"),
    ]
    assert news[0].data["date"] == "2020-05-01"


async def test_pages_over_http_and_the_client(
    store: JobStore, index: Index, tenant: str, tmp_path: Path
) -> None:
    jobs = [await answered(store, tenant, index, (ASPIRIN, "It was safe.")) for _ in range(3)]
    take_notices(write(tmp_path / "rw.csv", row()), index)
    api = create_app(Settings.model_validate({"POSOLOGY_INDEX": index.uri}), store)
    transport = httpx2.ASGITransport(api)
    async with Client("http://localhost", tenant=tenant, transport=transport) as client:
        told = [one async for one in client.affected(page=2)]
        assert [one.job for one in told] == jobs[::-1]
        assert [one async for one in client.affected(since="2999-01-01")] == []
    async with Client("http://localhost", tenant=f"{tenant}x", transport=transport) as client:
        assert [one async for one in client.affected()] == []


def test_the_commands(index: Index, tenant: str, redis_url: str, tmp_path: Path) -> None:
    async def submit() -> str:
        async with open_store(redis_url) as store:
            return await answered(store, tenant, index, (ASPIRIN, "It was safe."))

    job = anyio.run(submit)

    def run(*arguments: str) -> tuple[int, str]:
        environment = {
            "POSOLOGY_REDIS_URL": redis_url, "POSOLOGY_TENANT": tenant, "POSOLOGY_INDEX": index.uri,
            "COLUMNS": "200",
        }  # fmt: skip
        result = CliRunner().invoke(command, list(arguments), env=environment)
        return result.exit_code, result.stdout

    code, out = run("answers", "affected", "--fail")
    assert (code, "0 of 1 stored answers affected" in out) == (0, True)
    file = str(write(tmp_path / "rw.csv", row(), row(RetractionNature="?")))
    code, out = run("index", "notices", file, "--json")
    schema = json.loads((SCHEMAS / "notices.json").read_text(encoding="utf-8"))
    jsonschema.validate(json.loads(out), schema)
    assert (code, json.loads(out)["changed"]) == (1, 1)
    code, out = run("show", "pmid:1")
    assert "RETRACTED (retraction-watch 2020-05-01)" in out
    code, out = run("answers", "affected", "--fail", "--notify", "--json")
    jsonschema.validate(
        json.loads(out), json.loads((SCHEMAS / "affected.json").read_text(encoding="utf-8"))
    )
    assert (code, [one["job"] for one in json.loads(out)["answers"]]) == (1, [job])
    code, out = run("answers", "affected", "--days", "1")
    assert code == 0
    assert "pmid:1 retracted (by retraction-watch, doi:10.1000/notice, 2020-05-01" in out
