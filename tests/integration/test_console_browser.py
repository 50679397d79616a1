"""The console in Chromium, as a user uses it: no error, nothing that the policy blocks, and nothing that axe objects to.

With ``CONSOLE_PICTURES=1`` the pictures of ``docs/figures`` are made anew.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from redis.asyncio import Redis

from orchestrator.api.app import create_app
from orchestrator.console.routes import ROUTES as CONSOLE
from orchestrator.jobs.store import JobStore
from orchestrator.settings import Settings
from orchestrator.webhooks.store import WebhookStore
from posology.budget.tenants.store import TenantStore
from posology.store import keys
from posology.types import Limits
from tests.integration.conftest import Serve
from tests.support.console import answered, run_job_held

if TYPE_CHECKING:
    from axe_playwright_python import async_playwright as axe
    from playwright import async_api as playwright
else:
    playwright = pytest.importorskip("playwright.async_api", reason="playwright is not installed")
    axe = pytest.importorskip("axe_playwright_python.async_playwright", reason="axe is missing")

pytestmark = pytest.mark.slow

FIGURES = Path(__file__).resolve().parents[2] / "docs" / "figures"
CONSOLE_KEY = "the-operators-own-key-of-the-console"
#: milliseconds that a step may take on a slow machine
PATIENCE = 90_000
#: pixels of a picture's height
TALL = 1_200


@dataclass(kw_only=True, slots=True)
class Browser:
    """A page of Chromium, and what went wrong in it."""

    page: playwright.Page
    url: str
    #: lines of its console that are errors or warnings, requests to elsewhere, and failed ones
    wrong: list[str] = field(default_factory=list)

    async def open(self, path: str) -> None:
        reply = await self.page.goto(self.url + path, wait_until="load")
        assert reply is not None
        assert reply.status == 200
        assert self.page.url == self.url + path

    async def sign_in(self, key: str) -> None:
        await self.open("/console/sign-in")
        await self.page.get_by_label("API key").fill(key)
        async with self.page.expect_navigation():
            await self.page.keyboard.press("Enter")
        assert "sign-in" not in self.page.url

    async def check(self, picture: str | None = None) -> None:
        """The page as it is now has no fault; in both colour schemes."""
        for scheme in ("dark", "light"):
            await self.page.emulate_media(color_scheme=scheme)
            found = await axe.Axe().run(self.page)
            assert found.violations_count == 0, found.generate_report()
            if picture and os.environ.get("CONSOLE_PICTURES"):
                name = f"console-{picture}{'-dark' * (scheme == 'dark')}.png"
                if scheme == "light" or picture == "job":
                    await self.draw(FIGURES / name, whole=picture in ("job", "compare"))
        width = await self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width[0] <= width[1], "the page is wider than the window"
        assert self.wrong == []

    async def draw(self, file: Path, *, whole: bool) -> None:
        """Store a picture of the page, of a long one its upper part."""
        width, height = await self.page.evaluate(
            "[innerWidth, document.documentElement.scrollHeight]"
        )
        tall = height if whole else min(height, TALL)
        clip: playwright.FloatRect = {"x": 0, "y": 0, "width": width, "height": tall}
        keep(file, await self.page.screenshot(full_page=True, clip=clip))


def keep(file: Path, picture: bytes) -> None:
    """Store a picture of a page, which has few colours, in few bytes."""
    from PIL import Image

    Image.open(BytesIO(picture)).convert("RGB").quantize(64).save(file, optimize=True)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def chromium() -> AsyncIterator[playwright.Browser]:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    async with playwright.async_playwright() as started:
        # a container has no sandbox of its own for its root
        browser = await started.chromium.launch(executable_path=found, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            await browser.close()


async def browse(
    chromium: playwright.Browser, url: str, *, scripts: bool = True, width: int = 1200
) -> Browser:
    """A window that notes all that goes wrong in it."""
    context = await chromium.new_context(
        viewport={"width": width, "height": 900}, java_script_enabled=scripts
    )
    context.set_default_timeout(PATIENCE)
    page = await context.new_page()
    made = Browser(page=page, url=url)
    page.on("pageerror", lambda error: made.wrong.append(str(error)))
    page.on(
        "console",
        lambda line: made.wrong.append(line.text) if line.type in ("error", "warning") else None,
    )
    page.on(
        "request",
        lambda one: None if one.url.startswith((url, "data:")) else made.wrong.append(one.url),
    )
    return made


def settings(redis_url: str, **more: str) -> Settings:
    given = {"POSOLOGY_REDIS_URL": redis_url, "POSOLOGY_AUTH": "keys", "POSOLOGY_CONSOLE_KEY": CONSOLE_KEY}  # fmt: skip
    return Settings.model_validate(given | more)


@pytest.mark.anyio
async def test_a_user_signs_in_and_submits_a_batch(
    chromium: playwright.Browser,
    redis: Redis,
    redis_url: str,
    tenant: str,
    serve: Serve,
    tmp_path: Path,
) -> None:
    tenant = f"acme-{tenant[:6]}"
    issued = await TenantStore(redis, redis_url).create(tenant, Limits(day=Decimal(5)))
    with serve(create_app(settings(redis_url))) as url:
        one = await browse(chromium, url)
        await one.open("/console/sign-in")
        await one.check("sign-in")
        await one.sign_in(issued.key)
        await one.open("/console/batches")
        file = tmp_path / "questions.jsonl"
        file.write_text("".join(f'{{"question": "Question {n}?"}}\n' for n in range(3)))
        await one.page.get_by_label("JSON lines, also gzip").set_input_files(file)
        async with one.page.expect_navigation():
            await one.page.get_by_role("button", name="Submit").click()
        await playwright.expect(one.page.get_by_text("0 of 3 jobs ended")).to_be_visible()
        await one.check()
        chief = await browse(chromium, url)
        await chief.sign_in(CONSOLE_KEY)
        await chief.open(f"/console/tenants/{tenant}")
        await chief.check()


@pytest.mark.anyio
async def test_a_question_is_asked_by_the_keyboard_alone(
    chromium: playwright.Browser, redis: Redis, redis_url: str, tenant: str, serve: Serve
) -> None:
    issued = await TenantStore(redis, redis_url).create(tenant)
    with serve(create_app(settings(redis_url))) as url:
        one = await browse(chromium, url)
        await one.sign_in(issued.key)
        keyboard, focused = one.page.keyboard, one.page.locator(":focus")
        await keyboard.press("Tab")
        await playwright.expect(focused).to_have_text("Skip to content")
        await keyboard.press("Enter")
        await keyboard.press("Tab")
        await playwright.expect(focused).to_have_attribute("name", "question")
        await keyboard.type("Does it help?")
        seen = list[str]()
        while not seen or seen[-1] != "Ask":
            await keyboard.press("Tab")
            text = await focused.evaluate("e => e.getAttribute('name') || e.textContent.trim()")
            assert len(seen) < 20, seen
            seen.append(text)
        assert seen == [
            "form",
            "model",
            "strategy",
            "policy",
            "k",
            "max_cost_usd",
            "Filters",
            "Ask",
        ]
        async with one.page.expect_navigation():
            await keyboard.press("Enter")
        await playwright.expect(one.page.locator(".title-row .state")).to_have_text("queued")
        await playwright.expect(one.page.get_by_role("button", name="Cancel")).to_be_visible()
        async with one.page.expect_navigation():
            await one.page.get_by_role("button", name="Cancel").press("Enter")
        await playwright.expect(one.page.locator(".title-row .state")).to_have_text("cancelled")
        assert one.wrong == []


@pytest.mark.anyio
async def test_a_running_job_is_followed_with_and_without_scripts(
    chromium: playwright.Browser, redis: Redis, redis_url: str, tenant: str, serve: Serve
) -> None:
    store = JobStore(redis, redis_url)
    issued = await TenantStore(redis, redis_url).create(tenant)
    job, succeed = await run_job_held(store, tenant)
    with serve(create_app(settings(redis_url))) as url:
        one = await browse(chromium, url)
        plain = await browse(chromium, url, scripts=False)
        for each in (one, plain):
            await each.sign_in(issued.key)
            await each.open(f"/console/jobs/{job}")
            await playwright.expect(each.page.locator(".title-row .state")).to_have_text("running")
        await one.check()
        await succeed(answered())
        for each in (one, plain):
            state = each.page.locator(".title-row .state")
            await playwright.expect(state).to_have_text("succeeded", timeout=PATIENCE)
            await playwright.expect(each.page.locator("mark")).to_be_visible(timeout=PATIENCE)
        await one.check()
        for each in (one, plain):
            await each.page.get_by_label("Follow-up question").fill("And in children?")
            async with each.page.expect_navigation():
                await each.page.get_by_role("button", name="Continue").click()
            asked = await each.page.get_by_label("Question").input_value()
            assert asked.endswith("? And in children?")
        await one.check("follow-up")
        assert one.wrong == plain.wrong == []


@pytest.mark.anyio
async def test_pages_of_other_sites_are_refused(
    chromium: playwright.Browser, redis: Redis, redis_url: str, tenant: str, serve: Serve
) -> None:
    """Cross-site forms of everything that changes something, and reads by another name."""
    store, tenants = JobStore(redis, redis_url), TenantStore(redis, redis_url)
    issued = await tenants.create(tenant)
    job, _ = await run_job_held(store, tenant)
    webhooks = WebhookStore(store)
    before, _ = await webhooks.create("https://example.org/", tenant=tenant)
    own = {
        f"/jobs/{job}/cancel": {},
        "/money/ledger/audit": {},
        "/compare": {"first": "direct"},
        "/webhooks": {"url": "https://evil.example/", "job.ended": "yes"},
        f"/webhooks/{before.id}/rotate": {"overlap": "0"},
        f"/webhooks/{before.id}/test": {},
        f"/webhooks/{before.id}/redeliver": {},
        f"/webhooks/{before.id}/switch": {"to": "paused"},
        f"/webhooks/{before.id}/remove": {},
    }
    chiefs = {
        "/tenants": {"name": f"{tenant}-evil"},
        f"/tenants/{tenant}/limits": {"day": "1"},
        f"/tenants/{tenant}/rotate": {"grace": "0"},
        f"/tenants/{tenant}/revoke": {"key": issued.tenant.keys[0].id},
        f"/tenants/{tenant}/switch": {"to": "disabled"},
        f"/tenants/{tenant}/audit": {},
    }
    with serve(create_app(settings(redis_url))) as url:
        evil = "http://evil.localhost:" + url.rpartition(":")[2]
        for key, forms in ((issued.key, own), (CONSOLE_KEY, chiefs)):
            one = await browse(chromium, url)
            await one.sign_in(key)
            page = one.page
            for path, given in forms.items():
                await attack(page, evil, f"{url}/console{path}", given)
                assert "another site" in await page.inner_text("main"), path
            # the cookie belongs to one name, so another name for the same address is signed out
            await page.goto(f"{evil}/console/jobs")
            assert "/console/sign-in" in page.url
    assert (await store.state(job, tenant=tenant)).value == "running"
    assert await tenants.get(tenant) == issued.tenant
    assert await webhooks.all(tenant=tenant) == (before,)
    assert not [name async for name in redis.scan_iter(match=f"{keys.prefix(tenant)}audit*")]


async def attack(
    page: playwright.Page, evil: str, action: str, given: Mapping[str, str]
) -> playwright.Response | None:
    """Send a form from a page of another site, and return the response to it."""

    async def answer(route: playwright.Route) -> None:
        fields = "".join(
            f'<input name="{name}" value="{value}">'
            for name, value in {**given, "form_token": "0" * 64}.items()
        )
        form = f'<form method="post" action="{action}">{fields}</form>'
        await route.fulfill(content_type="text/html", body=form)

    await page.route(f"{evil}/attack", answer)
    await page.goto(f"{evil}/attack")
    async with page.expect_navigation() as sent:
        await page.evaluate("document.forms[0].submit()")
    await page.unroute(f"{evil}/attack")
    return await sent.value


@pytest.mark.anyio
async def test_no_name_of_an_attacker_leads_to_a_console_without_keys(
    redis_url: str, serve: Serve
) -> None:
    """DNS rebinding: a browser takes an attacker's name for this machine, and opens each page and sends each form."""
    with serve(create_app(Settings.model_validate({"POSOLOGY_REDIS_URL": redis_url}))) as url:
        port = url.rpartition(":")[2]
        resolver = f"--host-resolver-rules=MAP evil.example 127.0.0.1:{port}"
        found = shutil.which("chromium") or shutil.which("chromium-browser")
        if found is None:
            pytest.skip("there is no Chromium: apt-get install chromium")
        async with playwright.async_playwright() as started:
            rebound = await started.chromium.launch(
                executable_path=found, args=["--no-sandbox", resolver]
            )
            other, evil = await rebound.new_page(), f"http://evil.example:{port}"
            for route in CONSOLE:
                place = evil + route.path.replace("{", "").replace("}", "")
                if "GET" in (route.methods or ()):
                    reply = await other.goto(place)
                else:
                    reply = await attack(other, evil, place, {})
                assert reply is not None
                assert reply.status == 421, place
            await rebound.close()
