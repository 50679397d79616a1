"""A tenant can read, cancel or infer nothing of another: each operation of the API, and each key in Redis."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anyio import to_thread
from redis.asyncio import Redis
from redis.exceptions import NoPermissionError

from orchestrator.api.app import create_app
from orchestrator.jobs.affected import affected
from orchestrator.settings import Settings
from posology.index.schema import Row, digest
from posology.index.store import Index
from posology.published.answers import Evidence, Source
from posology.store import keys
from posology.store.connection import connect
from posology.testing.model import ScriptedModel
from posology.testing.models.embedder import HashEmbedder
from posology.text.sentences import split
from posology.types import Passage
from tests.integration.jobs_store.helpers import DIRECT, answer
from tests.support.indices import groups, index_of
from tests.support.life import (
    ANSWER,
    GLOBAL,
    KEY,
    PASSAGE,
    QUESTION,
    SECRETS,
    Side,
    call,
    live,
    side,
)

pytestmark = pytest.mark.anyio

OPEN = "what it says is of no tenant"
LIST = "it answers of one's own alone"
ITEM = "an id of another's is an id of nothing"
SHARED = "all tenants read the default index; tests/integration/test_collections.py: others by grant, at every operation"
UPLOADED = "tests/integration/test_uploads.py, test_ingesting.py: an ingest is its tenant's, by the prefix of its keys"
TOOLS = "tests/integration/test_mcp.py: two tenants, each with its own jobs alone"
FETCHED = "tests/integration/test_live_http.py: its ingest is its tenant's, and its count has the tenant's tag"
TABLED = "tests/integration/test_tables_http.py: a table of another tenant's is none; its calls are in the tenant's ledger"
OPERATOR = "a tenant's key does not open it"
CONSOLE = "tests/integration/test_console.py: a session has one tenant"
#: every operation that there is, and which of the tests below is about it
COVERED = {
    ("GET", "/openapi.json"): OPEN,
    ("GET", "/"): OPEN,
    ("GET", "/docs"): OPEN,
    ("GET", "/docs/page.js"): OPEN,
    ("GET", "/docs/page.css"): OPEN,
    ("GET", "/console"): CONSOLE,
    ("GET", "/console/static/{digest}/{name}"): CONSOLE,
    ("GET", "/console/sign-in"): CONSOLE,
    ("POST", "/console/sign-in"): CONSOLE,
    ("POST", "/console/sign-out"): CONSOLE,
    ("GET", "/console/oidc/start"): CONSOLE,
    ("GET", "/console/oidc/return"): CONSOLE,
    ("GET", "/console/jobs"): CONSOLE,
    ("GET", "/console/jobs/{job}"): CONSOLE,
    ("GET", "/console/jobs/{job}/events"): CONSOLE,
    ("POST", "/console/jobs/{job}/cancel"): CONSOLE,
    ("POST", "/console/jobs/{job}/retry"): CONSOLE,
    ("GET", "/console/jobs/{job}/export/{form}"): CONSOLE,
    ("GET", "/console/jobs/{job}/replay"): CONSOLE,
    ("GET", "/console/ask"): CONSOLE,
    ("POST", "/console/ask"): CONSOLE,
    ("POST", "/console/ask/estimate"): CONSOLE,
    ("GET", "/console/batches"): CONSOLE,
    ("POST", "/console/batches/upload"): CONSOLE,
    ("GET", "/console/batches/{batch}"): CONSOLE,
    ("POST", "/console/batches/{batch}/cancel"): CONSOLE,
    ("GET", "/console/batches/{batch}/download/{form}"): CONSOLE,
    ("GET", "/console/money"): CONSOLE,
    ("GET", "/console/money/ledger"): CONSOLE,
    ("POST", "/console/money/ledger/audit"): CONSOLE,
    ("GET", "/console/literature"): CONSOLE,
    ("GET", "/console/literature/contents"): CONSOLE,
    ("GET", "/console/literature/changed"): CONSOLE,
    ("GET", "/console/literature/passages/{passage:path}"): CONSOLE,
    ("GET", "/console/compare"): CONSOLE,
    ("POST", "/console/compare"): CONSOLE,
    ("GET", "/console/compare/{run}"): CONSOLE,
    ("GET", "/console/compare/{run}/figures/{figure}"): CONSOLE,
    ("GET", "/console/watches"): CONSOLE,
    ("GET", "/console/watches/{watch}"): CONSOLE,
    ("POST", "/console/watches/{watch}/turn"): CONSOLE,
    ("GET", "/console/webhooks"): CONSOLE,
    ("POST", "/console/webhooks"): CONSOLE,
    ("GET", "/console/webhooks/{webhook}"): CONSOLE,
    ("POST", "/console/webhooks/{webhook}/rotate"): CONSOLE,
    ("POST", "/console/webhooks/{webhook}/test"): CONSOLE,
    ("POST", "/console/webhooks/{webhook}/redeliver"): CONSOLE,
    ("POST", "/console/webhooks/{webhook}/switch"): CONSOLE,
    ("POST", "/console/webhooks/{webhook}/remove"): CONSOLE,
    ("GET", "/console/tenants"): OPERATOR,
    ("POST", "/console/tenants"): OPERATOR,
    ("GET", "/console/tenants/{tenant}"): CONSOLE,
    ("POST", "/console/tenants/{tenant}/limits"): CONSOLE,
    ("POST", "/console/tenants/{tenant}/rotate"): CONSOLE,
    ("POST", "/console/tenants/{tenant}/revoke"): CONSOLE,
    ("POST", "/console/tenants/{tenant}/switch"): CONSOLE,
    ("POST", "/console/tenants/{tenant}/audit"): CONSOLE,
    ("GET", "/console/reconciliations"): OPERATOR,
    ("GET", "/console/reconciliations/{report}"): CONSOLE,
    ("GET", "/console/workers"): OPERATOR,
    ("GET", "/console/{rest:path}"): CONSOLE,
    ("GET", "/healthz"): OPEN,
    ("GET", "/readyz"): OPEN,
    ("GET", "/metrics"): OPERATOR,
    ("GET", "/v1/jobs"): LIST,
    ("POST", "/v1/jobs"): LIST,
    ("GET", "/v1/jobs/{job}"): ITEM,
    ("DELETE", "/v1/jobs/{job}"): ITEM,
    ("POST", "/v1/jobs/{job}/retry"): ITEM,
    ("POST", "/v1/jobs/{job}/feedback"): ITEM,
    ("GET", "/v1/jobs/{job}/events"): ITEM,
    ("POST", "/v1/ask"): LIST,
    ("POST", "/v1/chat/completions"): LIST,
    ("POST", "/mcp"): TOOLS,
    ("GET", "/v1/models"): SHARED,
    ("GET", "/v1/models/{model}"): SHARED,
    ("POST", "/v1/batches"): LIST,
    ("GET", "/v1/batches"): LIST,
    ("GET", "/v1/batches/{batch}"): ITEM,
    ("DELETE", "/v1/batches/{batch}"): ITEM,
    ("GET", "/v1/batches/{batch}/rows"): ITEM,
    ("POST", "/v1/search"): SHARED,
    ("POST", "/v1/quotes"): SHARED,
    ("GET", "/v1/passages/{passage}"): SHARED,
    ("GET", "/v1/index"): SHARED,
    ("POST", "/v1/index/files"): UPLOADED,
    ("POST", "/v1/index/fetches"): FETCHED,
    ("GET", "/v1/index/ingests"): UPLOADED,
    ("GET", "/v1/index/ingests/{ingest}"): UPLOADED,
    ("DELETE", "/v1/index/ingests/{ingest}"): UPLOADED,
    ("GET", "/v1/answers/affected"): LIST,
    ("POST", "/v1/estimate"): LIST,
    ("POST", "/v1/tables"): TABLED,
    ("GET", "/v1/tables"): TABLED,
    ("GET", "/v1/tables/{table}"): TABLED,
    ("GET", "/v1/tables/{table}/file"): TABLED,
    ("DELETE", "/v1/tables/{table}"): TABLED,
    ("POST", "/v1/watches"): LIST,
    ("GET", "/v1/watches"): LIST,
    ("GET", "/v1/watches/{watch}"): ITEM,
    ("POST", "/v1/watches/{watch}/pause"): ITEM,
    ("POST", "/v1/watches/{watch}/resume"): ITEM,
    ("DELETE", "/v1/watches/{watch}"): ITEM,
    ("POST", "/v1/webhooks"): LIST,
    ("GET", "/v1/webhooks"): LIST,
    ("GET", "/v1/webhooks/{webhook}"): ITEM,
    ("DELETE", "/v1/webhooks/{webhook}"): ITEM,
    ("POST", "/v1/webhooks/{webhook}/rotate"): ITEM,
    ("POST", "/v1/webhooks/{webhook}/pause"): ITEM,
    ("POST", "/v1/webhooks/{webhook}/resume"): ITEM,
    ("POST", "/v1/webhooks/{webhook}/test"): ITEM,
    ("GET", "/v1/webhooks/{webhook}/failures"): ITEM,
    ("POST", "/v1/webhooks/{webhook}/redeliver"): ITEM,
    ("GET", "/v1/spend"): LIST,
}
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
ENDPOINT = re.compile(r"wh_[0-9a-f]+")
#: endings of the keys that a life must have made, for this test to say anything
LIFE = {
    "tenant", "keys", "money", "money:open", "money:leases", "money:lost", "money:lost:at", "money:by:DAY",
    "money:models", "money:queue", "money:queue:seen", "ledger", "metrics", "jobs", "waiting", "deadlines",
    "leases", "dead", "retention", "batches", "unclaimed:jobs", "unclaimed:calls", "state:queued",
    "state:succeeded", "state:failed", "state:extracting", "job:ID", "job:ID:calls", "job:ID:units",
    "job:ID:events", "job:ID:memo", "job:ID:context", "job:ID:extractions", "run:ID", "run:ID:queue",
    "batches:listed", "batch:ID", "batch:ID:jobs", "batch:ID:ids", "batch:ID:rejected", "idem:ID", "generation:ID",
    "qtable:ID", "webhooks", "webhooks:made", "webhook:ID", "webhook:ID:due", "webhook:ID:since",
    "webhook:ID:about:ID", "webhook:ID:failed", "watches", "watches:due", "watch:ID", "watch:ID:changes",
}  # fmt: skip


@asynccontextmanager
async def two(url: str, tenant: str, **settings: str) -> AsyncIterator[tuple[Redis, Side, Side]]:
    """A connection that may all, and two tenants."""
    admin = connect(url)
    try:
        async with (
            side(admin, url, f"{tenant}-a", **settings) as ours,
            side(admin, url, f"{tenant}-b", **settings) as theirs,
        ):
            yield admin, ours, theirs
    finally:
        await admin.aclose()


async def content(redis: Redis, name: str) -> Any:
    match await redis.type(name):
        case "hash":
            return await redis.hgetall(name)
        case "set":
            return await redis.smembers(name)
        case "zset":
            return await redis.zrange(name, 0, -1, withscores=True)
        case "list":
            return await redis.lrange(name, 0, -1)
        case "stream":
            return await redis.xrange(name)
        case "none":
            return None
        case _:
            return await redis.get(name)


async def held_by(redis: Redis, one: Side) -> dict[str, Any]:
    """All that stands under a tenant's tag."""
    pattern = f"{keys.prefix(one.tenant)}*"
    names = [name async for name in redis.scan_iter(match=pattern, count=1_000)]
    return {name: await content(redis, name) for name in sorted(names)}


async def kept_by(redis: Redis, one: Side) -> dict[str, Any]:
    """The same without queues, which are forgotten after some seconds."""
    return {
        name: what for name, what in (await held_by(redis, one)).items() if ":queue" not in name
    }


def routes(app: Any) -> Iterator[tuple[str, str]]:
    """All of an app, those of included routers too."""
    for path, item in app.openapi()["paths"].items():
        yield from ((method.upper(), path) for method in item)
    for route in app.routes:
        if hasattr(route, "path"):
            yield from ((method, route.path) for method in route.methods - {"HEAD"})


def test_every_operation_is_covered() -> None:
    found = set(routes(create_app(Settings())))
    assert found == set(COVERED), "say below how a tenant is kept from another's with it"
    for (_, path), how in COVERED.items():
        assert how in (SHARED, UPLOADED, CONSOLE, TOOLS, FETCHED, TABLED) or ("{" in path) == (
            how == ITEM
        )


async def test_every_key_is_the_tenants_own_or_global(redis_url: str, tenant: str) -> None:
    async with two(redis_url, tenant) as (admin, _, theirs):
        before = {name async for name in admin.scan_iter(count=1_000)}
        seen: set[str] = set()

        async def look() -> None:
            now = {name async for name in admin.scan_iter(count=1_000)}
            for name in now - before - seen:
                if not name.startswith(keys.prefix(theirs.tenant)):
                    assert name in GLOBAL, f"{name} has no tenant's tag"
            for name in GLOBAL:
                await check_global(admin, name)
            seen.update(now)

        await live(theirs, look)
        own = {name for name in seen if name.startswith(keys.prefix(theirs.tenant))}
        kinds = {kind(name.removeprefix(keys.prefix(theirs.tenant))) for name in own}
        assert kinds >= LIFE, f"the life made no {sorted(LIFE - kinds)}"
        # so that what was looked for in vain could have been found
        theirs_all = json.dumps(await held_by(admin, theirs), default=str)
        assert all(secret in theirs_all for secret in SECRETS)
        record = await admin.hgetall(keys.api_key(theirs.issued.key.split("_")[1]))
        assert set(record) == {"tenant", "hash"}
        assert record["tenant"] == theirs.tenant
        assert re.fullmatch("[0-9a-f]{64}", str(record["hash"]))


def kind(name: str) -> str:
    """What a key is, whichever job, day or idempotency key it is of."""
    name = re.sub(
        r"^(job|run|batch|idem|generation|qtable|webhook|watch):(?:.*_)?[^:]+(?::\d+$)?",
        r"\1:ID",
        name,
    )
    name = re.sub(r"^webhook:.*:about:.*", "webhook:ID:about:ID", name)
    return re.sub(r"\d{4}-\d\d-\d\d", "DAY", name)


async def check_global(redis: Redis, name: str) -> None:
    """A key that all tenants share holds names of tenants or of workers, times or a token, and nothing else."""
    found = await content(redis, name)
    text = json.dumps(found, default=str)
    assert not any(secret in text for secret in SECRETS), name
    assert not re.search(r"(job|batch|run|watch)_[0-9a-f]{8}", text), name
    match name:
        case (
            keys.REGISTERED
            | keys.PAST
            | keys.SPENDERS
            | keys.WAITING
            | keys.WEBHOOKS
            | keys.WATCHES
        ):
            assert all(NAME.fullmatch(member) for member in found or ())
        case keys.TENANTS:
            assert all(NAME.fullmatch(member) and score > 0 for member, score in found or ())
        case keys.WORKERS | keys.ANSWERING:
            assert all(re.fullmatch(r"[^:]+:\d+", member) for member, _ in found or ())
        case keys.WAKE:
            assert found in (None, ["1"])
        case keys.DUE:
            named = (member.split("|") for member, score in found or () if score > 0)
            assert all(NAME.fullmatch(name) and ENDPOINT.fullmatch(one) for name, one in named)
        case keys.SWEPT | keys.AMNESTY | keys.LOOKED | keys.CLOCK | keys.PUT_BACK:
            assert found is None or found.isdecimal()
        case keys.SWEEP | keys.TIDY | keys.BATCHES | keys.WATCHING:
            assert found in (None, "1")
        case _:
            raise AssertionError(f"nobody has said what {name} may hold")


async def test_messages_name_ids_alone(redis_url: str, tenant: str) -> None:
    """The broker's keys are the one thing that all tenants' jobs pass through."""
    from workers.app import make_app

    async with two(redis_url, tenant) as (admin, _, theirs):
        job = await theirs.submit(key=KEY)
        unit = await theirs.work.take(theirs.tenant)
        assert unit is not None
        before = {name async for name in admin.scan_iter(count=1_000)}
        place = redis_url.replace("unix://", "redis+socket://")
        app = make_app(Settings.model_validate({"POSOLOGY_REDIS_URL": place}))
        with app.connection_for_write() as connection:
            app.send_task(
                "posology.answer",
                args=[unit.tenant, unit.job, [unit.name]],
                queue="posology.jobs",
                connection=connection,
            )
        made = {name async for name in admin.scan_iter(count=1_000)} - before
        assert "posology.jobs" in made
        assert {
            n for n in made if n != "posology.jobs" and not n.startswith("_kombu.binding")
        } == set()
        (message,) = map(str, await admin.lrange("posology.jobs", 0, -1))
        body = b64decode(json.loads(message)["body"]).decode()
        assert job in body
        assert not any(secret in message + body for secret in SECRETS)
        await admin.delete(*made)


async def test_no_step_of_a_life_touches_anothers_keys(redis_url: str, tenant: str) -> None:
    """The life's connection may use the tenant's keys and the global ones, and Redis refuses the others."""
    async with two(redis_url, tenant) as (_, ours, theirs):
        await live(theirs)
        # so that a refusal would have been seen
        for work in (
            ours.redis.hgetall(f"{keys.prefix(theirs.tenant)}tenant"),
            ours.redis.hgetall(keys.api_key(theirs.issued.key.split("_")[1])),
            ours.store.run("take", keys.prefix(theirs.tenant)),
        ):
            with pytest.raises(Exception, match=r"(?i)permission|NOPERM|access one of the keys"):
                await work
        with pytest.raises(NoPermissionError):
            await ours.redis.get("anything")


def normal(reply: httpx2.Response, own: str) -> tuple[int, str, dict[str, str]]:
    headers = {
        name: v
        for name, v in reply.headers.items()
        if name not in ("date", "content-length", "x-request-id")
    }
    return reply.status_code, reply.text.replace(own, "ID"), headers


async def test_an_id_of_another_is_an_id_of_nothing(redis_url: str, tenant: str) -> None:
    async with two(redis_url, tenant) as (admin, ours, theirs):
        await live(theirs)
        await ours.submit()
        before = await kept_by(admin, theirs)
        asked = 0
        for (method, path), how in COVERED.items():
            if how != ITEM:
                continue
            what = path.partition("{")[2].partition("}")[0]
            real = {
                "job": theirs.jobs,
                "batch": theirs.batches,
                "webhook": theirs.webhooks,
                "watch": theirs.watches,
            }[what]
            none = keys.new_id(what)
            for extra in (
                {},
                {"Last-Event-ID": theirs.events[0]},
                {"Accept": "application/x-ndjson"},
            ):
                wanted = await ours.http.request(
                    method, path.replace(f"{{{what}}}", none), headers=extra
                )
                assert wanted.status_code == 404
                for own in real:
                    got = await ours.http.request(
                        method, path.replace(f"{{{what}}}", own), headers=extra
                    )
                    assert normal(got, own) == normal(wanted, none), (method, path)
                    asked += 1
        made = (len(theirs.jobs), len(theirs.batches), len(theirs.webhooks), len(theirs.watches))
        assert (asked, made) == (3 * (5 * 7 + 3 + 8 + 4), (7, 1, 1, 1))
        assert await kept_by(admin, theirs) == before, "nothing of theirs was changed"


async def test_lists_hold_ones_own_alone(redis_url: str, tenant: str) -> None:
    async with two(redis_url, tenant) as (admin, ours, theirs):
        mine = await ours.submit("Is it mine?")
        # a parameter of each that names what is another's
        asked = [
            "/v1/jobs",
            "/v1/jobs?limit=1",
            "/v1/batches",
            "/v1/batches?state=running",
            "/v1/spend",
            "/v1/spend?by=model",
            "/v1/spend?by=stage",
            "/v1/webhooks",
            "/v1/watches",
        ]
        asked += [
            f"/v1/jobs?state={state}" for state in ("queued", "running", "failed", "succeeded")
        ]
        before = [(await ours.http.get(path)).text for path in asked]

        await live(theirs)
        after = [(await ours.http.get(path)).text for path in asked]
        assert after == before
        assert [job["id"] for job in json.loads(after[0])["jobs"]] == [mine]
        for cursor in (*theirs.jobs, *theirs.batches):
            found = (await ours.http.get(f"/v1/jobs?cursor={cursor}")).json()["jobs"]
            assert {job["id"] for job in found} <= {mine}
        for secret in (*SECRETS, theirs.tenant, *theirs.jobs, *theirs.batches):
            assert secret not in "".join(after)
        ours_all = json.dumps(await held_by(admin, ours), default=str)
        assert theirs.tenant not in ours_all


async def test_an_estimate_goes_by_ones_own_calls_alone(
    redis_url: str, tenant: str, tiny_encoder: Path, tmp_path: Path
) -> None:
    place = await to_thread.run_sync(index_of, tmp_path, tiny_encoder, groups(1))
    given = {"POSOLOGY_INDEX": str(place), "POSOLOGY_EMBEDDER": str(tiny_encoder)}
    async with two(redis_url, tenant, **given) as (_, ours, theirs):

        async def estimate(one: Side) -> dict[str, Any]:
            body = {"question": QUESTION, "model": "openai:gpt-4o-mini"}
            reply = await one.http.post("/v1/estimate", json=body)
            assert reply.status_code == 200, reply.text
            found: dict[str, Any] = reply.json()
            del found["seconds"]
            assert {balance.pop("tenant") for balance in found["balances"]} == {one.tenant}
            return found

        before = await estimate(ours)
        assert before == await estimate(theirs)
        await live(theirs)
        assert await estimate(ours) == before
        # theirs goes by what they spent, so ours could have
        assert await estimate(theirs) != before


async def test_answers_are_compared_and_told_of_ones_own_alone(
    redis_url: str, tenant: str, tmp_path: Path
) -> None:
    cited, embedder = Passage(id="t:1", text=PASSAGE), HashEmbedder(dim=16)
    index = Index.create(tmp_path / "index", embedder.name, embedder.dim)
    sentences = split(cited.text)
    (encoded,) = embedder.embed_passages([cited], [sentences])
    index.upsert([Row(passage=cited, sentences=sentences, encoded=encoded, digest=digest(cited))])
    evidence = Evidence(
        passage=Source.of(cited), start=0, end=len(PASSAGE), quote=PASSAGE, context_start=0, context=PASSAGE
    )  # fmt: skip
    used = {"evidence": (evidence,), "index": index.view().version}
    index.delete([cited.id])

    async def answered(one: Side, question: str) -> str:
        held = await one.held(await one.submit(question))
        await one.work.decide(held, DIRECT, calls=1)
        await one.work.succeed(held, answer(ANSWER).model_copy(update=used))
        return held.unit.job

    async def listed(one: Side, query: str = "") -> tuple[int, list[str]]:
        reply = await one.http.get(f"/v1/answers/affected{query}")
        assert reply.status_code == 200, reply.text
        found = reply.json()
        return found["checked"], [each["job"] for each in found["answers"]]

    async with two(redis_url, tenant, POSOLOGY_INDEX=index.uri) as (admin, ours, theirs):
        their_job = await answered(theirs, QUESTION)
        assert await listed(ours) == (0, [])
        job = await answered(ours, "Is it mine?")
        theirs_before = await kept_by(admin, theirs)
        assert await listed(ours) == (1, [job])
        told = (await ours.http.get(f"/v1/answers/affected?cursor={their_job}")).text
        assert not any(text in told for text in (their_job, theirs.tenant, QUESTION))
        # the connection may use our keys alone
        first = datetime.now(UTC) - timedelta(days=1)
        page = await affected(ours.store, index, tenant=ours.tenant, since=first, notify=True)
        assert page.notified == 1
        assert await kept_by(admin, theirs) == theirs_before, "nothing of theirs was changed"
        # so that it could have been listed
        assert await listed(theirs) == (1, [their_job])


async def test_what_is_of_no_tenant_tells_of_none(redis_url: str, tenant: str) -> None:
    async with two(redis_url, tenant) as (_, ours, theirs):
        paths = [path for (_, path), how in COVERED.items() if how == OPEN]

        async def told() -> list[tuple[int, str]]:
            replies = [await ours.http.get(path) for path in paths]
            return [(reply.status_code, reply.text) for reply in replies]

        before = await told()

        await live(theirs)
        assert await told() == before
        # sums of all tenants tell of the others to whoever knows his own
        figures = await ours.http.get("/metrics")
        assert figures.status_code == 401
        assert "posology_" not in figures.text


async def test_idempotency_keys_are_each_tenants_own(redis_url: str, tenant: str) -> None:
    async with two(redis_url, tenant) as (_, ours, theirs):
        await theirs.submit(key=KEY)
        lines = json.dumps({"question": QUESTION})
        headers = {"Idempotency-Key": KEY, "Content-Type": "application/x-ndjson"}
        batch = (await theirs.http.post("/v1/batches", content=lines, headers=headers)).json()["id"]
        # another request under their key is no conflict, and the same one no job of theirs
        for question in ("Is it mine?", QUESTION):
            key = KEY if question == "Is it mine?" else f"{batch}:0"
            made = await ours.http.post(
                "/v1/jobs", json={"question": question}, headers={"Idempotency-Key": key}
            )
            assert made.status_code == 202
            assert made.json()["id"] not in theirs.jobs
        mine = await ours.http.post("/v1/batches", content=lines, headers=headers)
        assert (mine.status_code, mine.json()["total"]) == (202, 1)
        assert mine.json()["id"] != batch


async def test_no_reply_is_shared(redis_url: str, tenant: str) -> None:
    """The same question by two tenants is paid for by each."""
    async with two(redis_url, tenant) as (admin, ours, theirs):
        model = ScriptedModel([ANSWER, "Mine.", "Mine again."])
        first = await theirs.held(await theirs.submit())
        assert (await theirs.complete(first, model)(call())).text == ANSWER
        await theirs.work.release(first)
        # whoever takes their job up again is given the reply, so there is something to take
        again = await theirs.held(theirs.jobs[0])
        assert (await theirs.complete(again, model)(call())).text == ANSWER
        assert len(model.calls) == 1
        job = await ours.submit()
        await ours.work.release(await ours.held(job))
        # not fresh: its memo is looked into
        held = await ours.held(job)
        assert not held.fresh
        assert (await ours.complete(held, model)(call())).text == "Mine."
        # nor do two jobs of one tenant share any
        other = await ours.submit()
        await ours.work.release(await ours.held(other))
        assert (await ours.complete(await ours.held(other), model)(call())).text == "Mine again."
        assert len(model.calls) == 3
        mine, others = [
            int(str(await admin.hget(f"{keys.prefix(one.tenant)}money", "spent:total")))
            for one in (ours, theirs)
        ]
        assert mine == 2 * others > 0


async def test_one_that_has_spent_all_takes_nothing_from_another(
    redis_url: str, tenant: str
) -> None:
    async with two(redis_url, tenant) as (admin, ours, theirs):
        await admin.hset(f"{keys.prefix(theirs.tenant)}tenant", "total", "1")
        await admin.hset(f"{keys.prefix(theirs.tenant)}tenant", "disabled", "1")
        refused = await theirs.http.get("/v1/jobs")
        assert refused.status_code == 403
        held = await ours.held(await ours.submit())
        assert (await ours.complete(held, ScriptedModel([ANSWER]))(call())).text == ANSWER
