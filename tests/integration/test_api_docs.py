"""The examples of the documentation, on a served API."""

from __future__ import annotations

import argparse
import doctest
import re
import shlex
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import yaml
from redis import Redis

import posology.client
from orchestrator.jobs.store import JobStore
from posology.store.connection import connect
from tests.integration.conftest import Finish, Served

DOCS = Path(__file__).resolve().parents[2] / "docs" / "reference" / "api.md"
MONITORING = DOCS.parents[1] / "monitoring"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    return [m[2] for m in BLOCK.finditer(DOCS.read_text(encoding="utf-8")) if m[1] == language]


@pytest.fixture
def clean(redis_url: str) -> None:
    with Redis.from_url(redis_url) as redis:
        for key in (*redis.scan_iter("posology:{default}*"), *redis.scan_iter("posology:{acme}*")):
            redis.delete(key)


def curl(line: str, base: str) -> httpx2.Response:
    """What curl does with the few of its options that the page uses."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("-X", dest="method")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("-d", dest="data")
    words = shlex.split(line)
    assert words[0] == "curl"
    given = parser.parse_args(words[1:])
    return httpx2.request(
        given.method or ("POST" if given.data else "GET"),
        given.url.replace("localhost:8000", base),
        headers=dict(header.split(": ") for header in given.headers),
        content=given.data,
        trust_env=False,
        timeout=60,
    )


def commands() -> Iterator[tuple[str, str]]:
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            # a quoted argument may go over several lines
            lines = part.splitlines()
            for n in range(1, len(lines)):
                try:
                    shlex.split("\n".join(lines[:n]))
                except ValueError:
                    continue
                yield "\n".join(lines[:n]), "\n".join(lines[n:]).strip()
                break


@pytest.mark.usefixtures("clean")
def test_the_commands_answer_what_the_page_says(served: Served) -> None:
    known: dict[str, str] = {}
    ran = 0
    for written, wanted in commands():
        command = written
        for name, value in known.items():
            command = command.replace(f"${name}", value)
        assert "$" not in command
        reply = curl(command, served.url)
        for name in ("job", "batch"):
            found = re.match(rf'\{{"id":"({name}_\w+)"', reply.text)
            if found:
                known[name.upper()] = found[1]
        # the page leaves out what is long
        pattern = ".*".join(map(re.escape, wanted.split("…")))
        got = reply.text.replace("\r\n", "\n").strip()
        assert re.fullmatch(pattern, got, re.DOTALL), f"{command}\n{got}"
        ran += 1
    assert ran == 13


@pytest.fixture
def _worker(redis_url: str, finish: Finish) -> Iterator[None]:
    """Ends the first two jobs of the page's tenant, as a worker would."""

    async def work() -> None:
        redis = connect(redis_url)
        try:
            store = JobStore(redis, redis_url)
            deadline = time.monotonic() + 90
            for _ in range(2):
                while not await finish(store, "acme"):  # the page's doing
                    assert time.monotonic() < deadline
                    await anyio.sleep(0.02)
        finally:
            await redis.aclose()

    thread = threading.Thread(target=anyio.run, args=(work,))
    thread.start()
    yield
    thread.join()


def run(text: str, name: str, **names: object) -> None:
    test = doctest.DocTestParser().get_doctest(text, dict(names), name, None, None)
    assert test.examples
    told: list[str] = []
    assert doctest.DocTestRunner().run(test, out=told.append).failed == 0, "".join(told)


@pytest.mark.usefixtures("clean", "_worker")
def test_the_pages_python_does_what_it_says(served: Served) -> None:
    (text,) = blocks("python")
    run(text.replace("http://localhost:8000", served.url), "api.md")


def test_the_clients_example_does_what_it_says(served: Served) -> None:
    run(posology.client.__doc__ or "", "posology.client", address=served.url)


def test_every_metric_is_on_the_page(served: Served) -> None:
    page = DOCS.read_text(encoding="utf-8")
    text = httpx2.get(f"{served.url}/metrics", trust_env=False, timeout=60).text
    for name in re.findall(r"^# TYPE (\w+) (?:gauge|counter|histogram)$", text, re.MULTILINE):
        assert name.removesuffix("_created").removesuffix("_total") in page, name


@pytest.mark.parametrize("name", ["grafana.json", "alerts.yml"])
def test_every_metric_of_the_dashboard_and_the_alerts_exists(served: Served, name: str) -> None:
    text = (MONITORING / name).read_text(encoding="utf-8")
    shown = httpx2.get(f"{served.url}/metrics", trust_env=False, timeout=60).text
    found = dict(re.findall(r"^# TYPE (\w+) (\w+)$", shown, re.MULTILINE))
    known = {f"{one}_bucket" if kind == "histogram" else one for one, kind in found.items()}
    expressions = list(_expressions(yaml.safe_load(text)))
    used = {one for text in expressions for one in re.findall(r"\bposology_\w+", text)}
    assert len(expressions) >= 8
    assert used <= known
    labels = {one for text in expressions for one in re.findall(r"[{,]\s*(\w+)[!=]", text)}
    assert labels <= {"state", "outcome", "status"}


def _expressions(tree: Any) -> Iterator[str]:
    """Texts of all fields ``expr``, however deep."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            if name == "expr":
                yield value
            else:
                yield from _expressions(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _expressions(value)


def test_every_event_is_on_the_page_of_monitoring() -> None:
    page = (DOCS.parents[1] / "how-to" / "monitoring.md").read_text(encoding="utf-8")
    root = DOCS.parents[2]
    found = set()
    for package in ("orchestrator", "workers"):
        for path in (root / package).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            found |= set(re.findall(r"\bnote\(\s*\"([^\"]+)\"", text))
    assert len(found) > 12
    assert {event for event in found if f"`{event}`" not in page} == set()
