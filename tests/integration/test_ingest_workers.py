"""Ingest spread over real Celery workers and a real Redis, which are killed in the middle."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from pydantic import SecretStr
from redis import Redis

from orchestrator.ingest.ingest import run_ingest
from orchestrator.ingest.shards.processes import WORKER, Spread
from orchestrator.ingest.shards.queue import RedisShards
from orchestrator.ingest.shards.store import INGEST, SHARDS, run_of
from orchestrator.ingest.writer import Target
from orchestrator.settings import Settings
from orchestrator.stack.options import StackOptions
from orchestrator.stack.up import running_stack
from posology.errors import ConfigurationError, EncodingFailed, NoWorkers
from posology.index.build.report import IngestReport
from posology.index.schema import TABLE
from posology.index.shards.staging import Staging
from posology.index.store import Index
from posology.testing.models.encoder import WORDS
from tests.support.waiting import until

#: seconds
LEASE = 8
RECORDS = 1_500


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chance = random.Random(7)
    path = tmp_path_factory.mktemp("corpus") / "rows.jsonl"
    lines = []
    for n in range(RECORDS):
        sentences = [
            " ".join(chance.choices(WORDS, k=chance.randint(4, 12))).capitalize() + f" {n}."
            for _ in range(chance.randint(2, 8))
        ]
        lines.append(
            json.dumps({"id": f"t:{n}", "title": f"Trial {n}", "text": " ".join(sentences)})
        )
    # a record that comes again much later, changed
    lines.append(json.dumps({"id": "t:3", "text": "Aspirin lowered the risk of stroke."}))
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def alone(corpus: Path, tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a single process makes of it."""
    place = tmp_path_factory.mktemp("alone") / "index"
    run_ingest([corpus], Settings(), Target(place=str(place), embedder=str(tiny_encoder)))
    return place


def _rows(place: Path) -> list[dict[str, Any]]:
    """Everything that the table holds, by id; twice what it holds twice."""
    rows: list[dict[str, Any]] = (
        Index.open(place).connection.open_table(TABLE).to_arrow().to_pylist()
    )
    return sorted(rows, key=lambda row: str(row["id"]))


def _same(one: Path, other: Path) -> None:
    first, second = _rows(one), _rows(other)
    assert [(row["id"], row["digest"]) for row in first] == [
        (row["id"], row["digest"]) for row in second
    ]
    for a, b in zip(first, second, strict=True):
        # batches of other sizes are padded otherwise, which moves the last bits of a float
        assert a["vector"] == pytest.approx(b["vector"], abs=1e-5)
        exact = a.keys() - {"vector", "sentence_vectors", "tokens"}
        assert {name: a[name] for name in exact} == {name: b[name] for name in exact}


@contextmanager
def _stack(folder: Path, encoder: Path, *, workers: int, lease: int = LEASE) -> Iterator[str]:
    options = StackOptions(
        environment={**os.environ, "OMP_NUM_THREADS": "1"},
        folder=folder,
        workers=workers,
        concurrency=1,
        api=False,
        overrides={"POSOLOGY_EMBEDDER": str(encoder), "POSOLOGY_LEASE": str(lease)},
        worker_argv=WORKER,
    )
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(running_stack(options)) as info,
    ):
        yield info.redis_url


def _settings(url: str) -> Settings:
    return Settings.model_construct(
        **{
            **Settings().model_dump(),
            "redis_url": SecretStr(url),
            "lease": float(LEASE),
        }
    )


def _ingest(corpus: Path, place: Path, encoder: Path, url: str) -> IngestReport:
    return run_ingest(
        [corpus], _settings(url), Target(place=str(place), embedder=str(encoder), spread=Spread())
    )


def _pids(redis: Redis) -> list[int]:
    names: Any = redis.zrange(SHARDS.processes, 0, -1)
    return [int(name.rpartition(":")[2]) for name in names]


def _holders(redis: Redis, place: Path) -> set[str]:
    """The workers that hold a shard now."""
    prefix = f"posology:{{ingest.{run_of(str(place))}}}:"
    names: Any = redis.zrange(f"{prefix}leases", 0, -1)
    tokens = {redis.hget(f"{prefix}item:{name}", "token") for name in names}
    return {str(token).partition(" ")[2] for token in tokens if token}


def _busy(redis: Redis, place: Path, process: subprocess.Popen[bytes]) -> set[str]:
    """Both workers, where each holds a shard."""
    assert process.poll() is None, "it ended before both had a shard"
    held = _holders(redis, place)
    return held if len(held) == 2 else set()


def _command(
    corpus: Path, place: Path, encoder: Path, url: str, *options: str, nice: int = 0
) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "POSOLOGY_REDIS_URL": url,
        "POSOLOGY_LEASE": str(LEASE),
        "OMP_NUM_THREADS": "1",
    }
    command = [
        sys.executable, "-c", f"import os; os.nice({nice}); from orchestrator.cli.app import main; main()",
        "ingest", str(corpus), "--index", str(place), "--embedder", str(encoder), "--json", *options,
    ]  # fmt: skip
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.mark.slow
def test_a_killed_worker_changes_nothing_in_the_result(
    corpus: Path, alone: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    place = tmp_path / "index"
    with (
        _stack(tmp_path / "stack", tiny_encoder, workers=2) as url,
        Redis.from_url(url, decode_responses=True) as redis,
    ):
        until(lambda: len(_pids(redis)) == 2)
        with _command(corpus, place, tiny_encoder, url, "--distributed") as process:
            try:
                victim = until(partial(_busy, redis, place, process)).pop()
                os.kill(int(victim.rpartition(":")[2]), signal.SIGKILL)
                out, err = process.communicate(timeout=200)
            finally:
                process.kill()
        assert process.returncode == 0, err.decode()
        report = json.loads(out)
        assert (report["written"], report["bad"]) == (RECORDS + 1, 0)
        # nothing is left in Redis or beside the index
        assert not redis.zrange(SHARDS.groups, 0, -1)
        assert not list(redis.scan_iter("posology:{ingest.*"))
    assert Staging(Index.open(place).connection, Index.open(place).meta).names() == set()
    _same(alone, place)


@pytest.mark.slow
def test_a_killed_writer_goes_on_from_what_was_encoded(
    corpus: Path, alone: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    place = tmp_path / "index"
    with _stack(tmp_path / "stack", tiny_encoder, workers=1) as url:
        with _command(corpus, place, tiny_encoder, url, "--distributed", nice=15) as process:
            # it gives way to whoever waits to kill it: a writer that keeps up with its worker takes
            # rows away as soon as they come
            until(lambda: process.poll() is not None or any(place.glob("shard-*-rows.lance")))
            process.kill()
        assert process.returncode == -signal.SIGKILL
        # of the shards that were offered, the worker goes on with the next
        until(lambda: any(place.glob("shard-*-rows.lance")))
        report = _ingest(corpus, place, tiny_encoder, url)
    assert report.written + report.unchanged == RECORDS + 1
    assert not list(place.glob("shard-*"))
    _same(alone, place)


@pytest.mark.slow
def test_workers_of_the_command_alone(
    corpus: Path, alone: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    place = tmp_path / "index"
    report = run_ingest(
        [corpus],
        Settings(),
        Target(place=str(place), embedder=str(tiny_encoder), spread=Spread(workers=2)),
    )
    assert report.written == RECORDS + 1
    _same(alone, place)


@pytest.mark.slow
def test_workers_with_another_embedder_end_the_ingest(
    corpus: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    from posology.testing.models.encoder import save_tiny_encoder

    other = save_tiny_encoder(tmp_path / "other", seed=1)
    with (
        _stack(tmp_path / "stack", other, workers=1) as url,
        pytest.raises(EncodingFailed) as failed,
    ):
        _ingest(corpus, tmp_path / "index", tiny_encoder, url)
    assert "IndexMismatch" in failed.value.reason
    assert failed.value.tries == 4


def test_without_workers_the_ingest_ends(redis_url: str, tmp_path: Path) -> None:
    with RedisShards(redis_url, str(tmp_path), lease=2.0, wait_timeout=0.3) as queue:
        queue.offer("aa")
        with pytest.raises(NoWorkers) as nobody:
            queue.wait("aa")
        queue.forget(["aa"])
    assert nobody.value.queue == INGEST


def test_vectors_that_are_paid_for_are_not_bought_by_workers(tmp_path: Path) -> None:
    from orchestrator.ingest.shards.encoders import Encoders, refuse_bought

    with pytest.raises(ConfigurationError, match="paid for"):
        refuse_bought("openai:text-embedding-3-small")
    refuse_bought("medcpt:DIR")
    refuse_bought(None)
    settings = Settings.model_validate({"POSOLOGY_EMBEDDER": "openai:text-embedding-3-small"})
    with pytest.raises(Exception, match=r"no index|paid for"):
        Encoders(settings)(str(tmp_path / "none"), "aa")
