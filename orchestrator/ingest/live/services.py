"""The configured literature services."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import anyio

from orchestrator.jobs.place import known_store
from orchestrator.settings import Settings
from posology.corpus.live import europepmc, pubmed
from posology.corpus.live.europepmc import EuropePMC
from posology.corpus.live.forms import Service, ServiceName
from posology.corpus.live.pace import Pace, ProcessPace, interval
from posology.corpus.live.pubmed import PubMed
from posology.corpus.live.wire import Wire

#: name that NCBI knows the program by
TOOL = "posology"


@asynccontextmanager
async def open_literature(settings: Settings, name: ServiceName) -> AsyncIterator[Service]:
    """Open a service during the block.

    Its pace is shared by all processes of a Redis, if one is configured or a stack runs; else it is this process's.

    Args:
        settings: addresses, API key, and the Redis.
        name: name of the service.

    Raises:
        ConfigurationError: an address is invalid.
    """
    fixed = {"tool": TOOL}
    if settings.email:
        fixed["email"] = settings.email
    url, per_second = settings.europepmc_url, europepmc.PER_SECOND
    if name == "pubmed":
        url, per_second = settings.eutils_url, pubmed.PER_SECOND
        if settings.ncbi_api_key is not None:
            fixed["api_key"] = settings.ncbi_api_key.get_secret_value()
            per_second = pubmed.PER_SECOND_WITH_KEY
    async with AsyncExitStack() as stack:
        pace = await _pace(settings, name, per_second, stack)
        wire = Wire(name, url, pace=pace, fixed=fixed if name == "pubmed" else _mail(settings))
        stack.push_async_callback(wire.aclose)
        yield PubMed(wire) if name == "pubmed" else EuropePMC(wire)


def _mail(settings: Settings) -> dict[str, str]:
    """Return the parameters of Europe PMC, which knows an address and no program."""
    return {"email": settings.email} if settings.email else {}


async def _pace(
    settings: Settings, name: ServiceName, per_second: float, stack: AsyncExitStack
) -> Pace:
    store = known_store(settings)
    if store is None:
        return ProcessPace(per_second)
    from posology.store.bucket import Bucket
    from posology.store.connection import FEW_TRIES, connect

    redis = connect(store, tries=FEW_TRIES)
    stack.push_async_callback(redis.aclose)
    bucket = Bucket(redis, store, key=f"posology:pace:{name}", seconds=interval(per_second))

    async def pace() -> None:
        await anyio.sleep(await bucket.take())

    return pace
