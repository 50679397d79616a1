"""The sign-in by a provider in Chromium: its cookies come and go as they should, and its policy blocks nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from redis.asyncio import Redis

from orchestrator.api.app import create_app
from posology.budget.tenants.store import TenantStore
from tests.integration.conftest import Serve
from tests.integration.test_console_browser import PATIENCE, browse, chromium, settings
from tests.support.oidc import Stub

if TYPE_CHECKING:
    from playwright import async_api as playwright
else:
    playwright = pytest.importorskip("playwright.async_api", reason="playwright is not installed")

pytestmark = pytest.mark.slow
__all__ = ["chromium"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def groups(redis: Redis, redis_url: str, tenant: str) -> str:
    store = TenantStore(redis, redis_url)
    for name in (tenant, f"{tenant}-b"):
        await store.create(name)
    return f"staff={tenant},both={tenant},both={tenant}-b"


@pytest.mark.anyio
async def test_a_person_signs_in_and_stays_in(
    chromium: playwright.Browser, redis_url: str, tenant: str, groups: str, serve: Serve
) -> None:
    stub = Stub()
    with serve(stub.app) as provider:  # type: ignore[arg-type]  # Starlette's, of which FastAPI's is one
        stub.issuer = provider
        app = create_app(settings(redis_url, **stub.settings, POSOLOGY_OIDC_GROUPS=groups))
        with serve(app) as served:
            # another site than the provider's
            url = served.replace("127.0.0.1", "localhost")
            for group in ("staff", "both"):
                stub.groups = [group]
                one = await browse(chromium, url)
                await one.page.goto(f"{url}/console/jobs?state=failed")
                await one.check()
                await one.page.get_by_role("link", name="Sign in with 127.0.0.1").click()
                if group == "both":
                    choice = one.page.get_by_role("link", name=f"{tenant}-b")
                    await playwright.expect(choice).to_be_visible()
                    one.wrong = [line for line in one.wrong if not line.startswith(provider)]
                    await one.check()
                    await choice.click()
                await one.page.wait_for_url(f"{url}/console/jobs?state=failed", timeout=PATIENCE)
                name = f"{tenant}-b" if group == "both" else tenant
                await playwright.expect(one.page.locator("form.who span")).to_have_text(name)
                one.wrong = [line for line in one.wrong if not line.startswith(provider)]
                await one.open("/console/money")
                await one.check()
                cookies = {cookie["name"]: cookie for cookie in await one.page.context.cookies()}
                assert set(cookies) == {"posology_console"}
                assert cookies["posology_console"]["sameSite"] == "Strict"
