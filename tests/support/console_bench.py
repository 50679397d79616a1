"""The console in a browser without JavaScript, and what every page of it must be."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal

import httpx2
from fastapi import FastAPI
from redis.asyncio import Redis

from orchestrator.api.app import create_app
from orchestrator.console.pages import HEADERS
from orchestrator.jobs.store import JobStore
from orchestrator.settings import Settings
from posology.budget.tenants.store import Issued, TenantStore
from posology.store import keys
from posology.types import Limits
from tests.support.pages import Links

CONSOLE_KEY = "the-operators-own-key-of-the-console"
#: bytes of a page at most
HEAVY = 150_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Console:
    """An app and a browser without JavaScript."""

    http: httpx2.AsyncClient
    store: JobStore
    issued: Issued
    app: FastAPI

    async def sign_in(self, key: str | None = None, to: str = "/console") -> httpx2.Response:
        self.http.cookies.clear()
        page = await self.http.get("/console/sign-in")
        given = {"form_token": token(page), "key": key or self.issued.key, "to": to}
        return await self.http.post("/console/sign-in", data=given)


def token(page: httpx2.Response) -> str:
    """The form token of a page."""
    found = re.search(r'name="form_token" value="([0-9a-f]{64})"', page.text)
    assert found is not None, page.text
    return found[1]


@asynccontextmanager
async def open_console(redis: Redis, url: str, tenant: str, *, auth: str | None = "keys", **more: str) -> AsyncIterator[Console]:  # fmt: skip
    given = {"POSOLOGY_CONSOLE_KEY": CONSOLE_KEY, **({"POSOLOGY_AUTH": auth} if auth else {})}
    store = JobStore(redis, url)
    app = create_app(Settings.model_validate({**given, **more}), store)
    issued = await TenantStore(redis, url).create(tenant, Limits(day=Decimal(100)))
    # the sign-ins that other tests let fail, all from one address
    await redis.delete(keys.console_failures("127.0.0.1"))
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
        yield Console(http=http, store=store, issued=issued, app=app)


def check(reply: httpx2.Response) -> None:
    """A page obeys no text, has nothing inline and nothing from elsewhere, and carries every header."""
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    for name, value in HEADERS.items():
        assert reply.headers[name] == value
    assert "unsafe" not in reply.headers["content-security-policy"]
    text = reply.text
    for seen in ("\x1b", "\u202e", "\u200b", "\u200d", "\ufeff", "\U000e0041", "<script>", "<img src=x", "<a href=javascript"):  # fmt: skip
        assert seen not in text, repr(seen)
    page = Links()
    page.feed(text)
    assert page.inline == []
    for link in page.links:
        assert link.startswith(("/", "#", "https://pubmed.ncbi.nlm.nih.gov/")), link
