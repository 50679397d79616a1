"""Every address and form of the console with what nobody types: a page says what is wrong, and none is a defect."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from redis.asyncio import Redis

from orchestrator.console.routes import ROUTES
from tests.support.console import make_index
from tests.support.console_bench import CONSOLE_KEY, open_console, token

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

VALUES = (
    *("9" * 5_000, "-" + "9" * 5_000, "--1", "-0", "\u0661", "\u00b2", "1e9", "0x1", " 1 ", "\x00", "\ud7ff\U0010ffff"),
    *("//[", "http://[", "//[::1", "https://evil.example", "/console//[", "../..", "%00", "a" * 5_000, "\r\nX: y"),
)  # fmt: skip
QUERIES = ("after", "before", "cursor", "passage", "question", "retrieve", "to", "version", "state")
FORMS = (
    *("to", "key", "name", "url", "grace", "overlap", "questions", "question", "k", "model", "day", "month", "calls"),
    *("queued", "stored", "models", "requests_per_minute", "policy", "other", "message", "active", "event", "was_day"),
)  # fmt: skip


def paths(value: str, method: str) -> list[str]:
    given = quote(value, safe="")
    found = []
    for route in ROUTES:
        if method not in (route.methods or ()) or "static" in route.path:
            continue
        names = route.param_convertors
        shape = route.path
        for name in names:
            shape = shape.replace(f"{{{name}:path}}", given).replace(f"{{{name}}}", given)
        found.append(shape)
    return found


@pytest.mark.parametrize("key", [None, "tenant", CONSOLE_KEY])
async def test_no_address_and_no_form_ends_in_a_defect(
    redis: Redis, redis_url: str, tenant: str, tmp_path: Path, tiny_encoder: Path, key: str | None
) -> None:
    async with open_console(
        redis, redis_url, tenant, POSOLOGY_INDEX=str(make_index(tmp_path, str(tiny_encoder)))
    ) as b:
        if key is not None:
            await b.sign_in(None if key == "tenant" else key)
        page = await b.http.get("/console/sign-in" if key is None else "/console/compare")
        wrong = []
        for value in VALUES:
            query = dict.fromkeys(QUERIES, value)
            for path in paths(value, "GET"):
                reply = await b.http.get(path, params=query)
                if reply.status_code >= 500:
                    wrong.append((path[:60], value[:20], reply.status_code))
            form = dict.fromkeys(FORMS, value) | {"form_token": token(page)}
            for path in paths(value, "POST"):
                if path.endswith("/sign-out"):
                    continue
                reply = await b.http.post(path, data=form)
                if reply.status_code >= 500:
                    wrong.append((path[:60], value[:20], reply.status_code))
        assert wrong == []
