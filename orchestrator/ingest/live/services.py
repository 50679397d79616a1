"""The configured literature services."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import anyio

from orchestrator.jobs.place import known_store
from orchestrator.settings import Settings
from posology.corpus.live import clinicaltrials, europepmc, pubmed, texts
from posology.corpus.live.clinicaltrials import ClinicalTrials
from posology.corpus.live.europepmc import EuropePMC
from posology.corpus.live.forms import Service, ServiceName
from posology.corpus.live.pace import Pace, ProcessPace, interval
from posology.corpus.live.pubmed import PubMed
from posology.corpus.live.texts import Archive, TextPlace, Unpaywall
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
    async with AsyncExitStack() as stack:
        wire = await _wire(settings, name, stack)
        match name:
            case "pubmed":
                yield PubMed(wire)
            case "europepmc":
                yield EuropePMC(wire)
            case "clinicaltrials":
                yield ClinicalTrials(wire)


@asynccontextmanager
async def open_places(settings: Settings) -> AsyncIterator[Sequence[TextPlace]]:
    """Open the places of full texts during the block, in the order in which they are asked.

    Raises:
        ConfigurationError: an address is invalid.
    """
    async with AsyncExitStack() as stack:
        pmc = PubMed(await _wire(settings, "pubmed", stack))
        european = EuropePMC(await _wire(settings, "europepmc", stack))
        unpaywall = await _wire(settings, "unpaywall", stack) if settings.email else None
        yield (
            Archive("pmc", pmc, closed="PubMed Central sends no text of it"),
            Archive("europepmc", european, closed="Europe PMC has no open text of it"),
            Unpaywall(unpaywall),
        )


async def _wire(settings: Settings, name: str, stack: AsyncExitStack) -> Wire:
    mail = {"email": settings.email} if settings.email else {}
    url, per_second, fixed = {
        "pubmed": (settings.eutils_url, pubmed.PER_SECOND, {"tool": TOOL, **mail}),
        "europepmc": (settings.europepmc_url, europepmc.PER_SECOND, mail),
        "clinicaltrials": (settings.clinicaltrials_url, clinicaltrials.PER_SECOND, {}),
        "unpaywall": (settings.unpaywall_url, texts.PER_SECOND, mail),
    }[name]
    if name == "pubmed" and settings.ncbi_api_key is not None:
        fixed["api_key"] = settings.ncbi_api_key.get_secret_value()
        per_second = pubmed.PER_SECOND_WITH_KEY
    pace = await _pace(settings, name, per_second, stack)
    wire = Wire(name, url, pace=pace, fixed=fixed)
    stack.push_async_callback(wire.aclose)
    return wire


async def _pace(settings: Settings, name: str, per_second: float, stack: AsyncExitStack) -> Pace:
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
