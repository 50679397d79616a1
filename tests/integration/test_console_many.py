"""Every page of the console in Chromium, over ten thousand jobs with hostile texts, and at a hundredth of them.

With ``CONSOLE_PICTURES=1`` the pictures of ``docs/figures`` are made anew.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
import pytest
from redis.asyncio import Redis

from orchestrator.api.app import create_app
from orchestrator.jobs.store import JobStore
from posology.store import keys
from posology.store.keys import DEFAULT_TENANT
from tests.integration.conftest import Serve
from tests.integration.test_console_browser import browse, chromium
from tests.support.console import HOSTILE, QUESTION
from tests.support.console_bench import HEAVY
from tests.support.console_full import Full, make_full

if TYPE_CHECKING:
    from playwright import async_api as playwright
else:
    playwright = pytest.importorskip("playwright.async_api", reason="playwright is not installed")

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

__all__ = ["chromium"]
#: pages with a picture, and its name
PICTURES = {
    "ask": "ask", "jobs": "jobs", "job": "job", "replay": "replay", "batches": "batches", "batch": "batch",
    "money": "money", "ledger": "ledger", "literature": "literature", "contents": "contents",
    "webhooks": "webhooks", "webhook": "webhook",
    "changed evidence": "changed", "passage": "passage", "evaluation": "evaluation", "tenants": "tenants",
    "tenant": "tenant", "reconciliations": "reconciliations", "reconciliation": "reconciliation", "workers": "workers",
}  # fmt: skip


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def client(full: Full, redis: Redis) -> AsyncIterator[httpx2.AsyncClient]:
    store = JobStore(redis, full.settings.redis)
    transport = httpx2.ASGITransport(create_app(full.settings, store), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
        yield http


async def costs(full: Full, redis: Redis) -> dict[str, tuple[int, int]]:
    """Commands to Redis, and bytes, of every page when it was opened before."""
    found = {}
    async with client(full, redis) as http:
        for name, path in full.paths.items():
            await http.get(path)
            before = (await redis.info("stats"))["total_commands_processed"]
            reply = await http.get(path)
            after = (await redis.info("stats"))["total_commands_processed"]
            assert reply.status_code == 200, (name, reply.text)
            found[name] = (after - before, len(reply.content))
    return found


async def test_ten_thousand_jobs_cost_no_page_more(
    redis: Redis, redis_url: str, tmp_path: Path, tiny_encoder: Path
) -> None:
    found = list[dict[str, tuple[int, int]]]()
    for jobs in (100, 10_000):
        folder = tmp_path / str(jobs)
        folder.mkdir()
        full = await make_full(
            redis, redis_url, folder, str(tiny_encoder), jobs=jobs, extra=HOSTILE
        )
        found.append(await costs(full, redis))
    few, many = found
    assert await redis.zcard(f"{keys.prefix(DEFAULT_TENANT)}jobs") > 10_000
    for name, (commands, size) in many.items():
        assert commands <= few[name][0] + 2, name
        assert size <= min(1.2 * few[name][1], HEAVY), name


@pytest.mark.parametrize(("jobs", "extra"), [(100, ""), (10_000, HOSTILE)], ids=["plain", "many"])
async def test_every_page_has_no_fault_in_a_browser(
    chromium: playwright.Browser,
    redis: Redis,
    redis_url: str,
    tmp_path: Path,
    tiny_encoder: Path,
    serve: Serve,
    jobs: int,
    extra: str,
) -> None:
    full = await make_full(redis, redis_url, tmp_path, str(tiny_encoder), jobs=jobs, extra=extra)
    with serve(create_app(full.settings)) as url:
        one = await browse(chromium, url, width=1200)
        one.page.on("dialog", lambda dialog: one.wrong.append(dialog.message))
        await one.open(full.paths["contents"])
        await playwright.expect(one.page.get_by_text("Passages by year")).to_be_visible()
        await one.open(full.paths["ledger"])
        async with one.page.expect_navigation():
            await one.page.get_by_role("button", name="Audit the ledger").click()
        await playwright.expect(one.page.locator("#audited .state")).to_have_text("correct")
        for name, path in full.paths.items():
            await one.open(path)
            picture = None if extra else PICTURES.get(name)
            await one.check(picture)
            scripts = one.page.locator("main script, main a[href^='javascript'], main img[onerror]")
            assert await scripts.count() == 0, name
        await one.open(full.paths["compare"])
        await one.page.get_by_label("Policy or strategy").fill("briefcontext")
        await one.page.get_by_label("The other one").fill("direct")
        await one.page.get_by_role("textbox", name="Questions").fill(f"{QUESTION}\nDoes it harm?")
        async with one.page.expect_navigation():
            await one.page.get_by_role("button", name="Compare").click()
        assert "2 with different doses" in await one.page.inner_text("main")
        await one.check(None if extra else "compare")
