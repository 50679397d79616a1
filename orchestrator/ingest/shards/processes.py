"""Workers of a distributed ingest: running ones, or temporary processes of this machine."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from anyio.from_thread import start_blocking_portal

from orchestrator.environment import environment
from orchestrator.ingest.shards.encoders import refuse_bought
from orchestrator.ingest.shards.queue import RedisShards
from orchestrator.ingest.shards.store import INGEST
from orchestrator.jobs.place import store_url
from orchestrator.settings import Settings
from orchestrator.stack.options import StackOptions
from orchestrator.stack.up import running_stack
from posology.index.shards.collector import WINDOW, ShardRowBuilder

if TYPE_CHECKING:
    from posology.index.store import Index

#: Records in a shard, which is the work lost with a worker: some ten seconds on one core.
SHARD = 256
#: command line of a worker that only encodes
WORKER = (
    sys.executable, "-m", "celery", "-A", "workers.app", "worker", "-Q", INGEST, "--concurrency", "1",
    "--loglevel", "WARNING", "--without-gossip", "--without-mingle", "-n", "ingest{number}@%h",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """Workers that encode."""

    #: worker processes of this machine, for this ingest only; ``None``: the workers of the configured Redis
    workers: int | None = None
    #: maximum number of shards in flight
    window: int = WINDOW


@contextmanager
def spreading(
    spread: Spread, settings: Settings, index: Index, *, embedder: str | None = None
) -> Iterator[ShardRowBuilder]:
    """Open the row builder of a distributed ingest. Blocking.

    Shards are removed from beside the index at the end. If the block raises, they stay for the next ingest.

    Args:
        spread: the workers.
        settings: the address of Redis, and the lease.
        index: the index to write.
        embedder: the ingest's embedder; workers of this machine use it, others have their own setting.

    Raises:
        ConfigurationError: the embedder is paid for, or Redis is not configured.
        ChildFailed: a worker of this machine does not start.
    """
    refuse_bought(embedder or settings.embedder)
    with ExitStack() as stack:
        if spread.workers is None:
            url = store_url(settings)
        else:
            url = stack.enter_context(_workers(spread.workers, settings, embedder))
        queue = stack.enter_context(RedisShards(url, index.uri, lease=settings.lease))
        builder = ShardRowBuilder(index, queue, window=spread.window)
        yield builder
        builder.close()


@contextmanager
def _workers(count: int, settings: Settings, embedder: str | None) -> Iterator[str]:
    """Start workers with a Redis of their own, whose data may be lost: the shards lie beside the index."""
    chosen = embedder or settings.embedder
    # each encodes one shard at a time: together they get as many threads as there are cores
    threads = settings.embedder_threads or max(1, (os.cpu_count() or 1) // count)
    overrides = {
        "OMP_NUM_THREADS": environment().get("OMP_NUM_THREADS") or str(threads),
        "POSOLOGY_EMBEDDER_THREADS": str(threads),
        "POSOLOGY_LEASE": str(settings.lease),
        **({} if chosen is None else {"POSOLOGY_EMBEDDER": chosen}),
    }
    with tempfile.TemporaryDirectory(prefix="posology-ingest-") as folder:
        options = StackOptions(
            environment={**environment(), **settings.environment()},
            folder=Path(folder),
            workers=count,
            concurrency=1,
            api=False,
            overrides=overrides,
            worker_argv=WORKER,
        )
        with (
            start_blocking_portal() as portal,
            portal.wrap_async_context_manager(running_stack(options)) as info,
        ):
            yield info.redis_url
