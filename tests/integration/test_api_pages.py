"""The pages for a browser: nothing from elsewhere, nothing inline, every operation."""

from __future__ import annotations

import re

import httpx2
import pytest

from orchestrator.api.app import create_app
from orchestrator.settings import Settings
from tests.support.pages import Links

pytestmark = pytest.mark.anyio


async def test_pages_lead_to_each_other_and_load_nothing_from_elsewhere() -> None:
    for auth in ("keys", None):
        app = create_app(Settings.model_validate({"POSOLOGY_AUTH": auth} if auth else {}))
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            left, seen = {"/"}, set[str]()
            while left:
                path = left.pop()
                seen.add(path)
                if path in ("/readyz", "/healthz") or path.startswith("/console"):
                    continue
                reply = await client.get(path)
                assert reply.status_code == 200, path
                assert (
                    not re.search(r"https?://(?!localhost)", reply.text) or path == "/openapi.json"
                )
                if path == "/openapi.json":
                    continue
                policy = reply.headers["content-security-policy"]
                assert "default-src 'none'" in policy
                assert "unsafe" not in policy
                assert reply.headers["x-content-type-options"] == "nosniff"
                if reply.headers["content-type"].startswith("text/html"):
                    page = Links()
                    page.feed(reply.text)
                    assert page.inline == []
                    left |= page.links - seen
            assert {"/docs", "/docs/page.js", "/docs/page.css", "/openapi.json"} <= seen


async def test_the_script_writes_text_only() -> None:
    app = create_app(Settings())
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        script = (await client.get("/docs/page.js")).text
        for way in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "localStorage",
        ):
            assert way not in script
