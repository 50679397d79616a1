"""The checks of ``posology doctor --live``: each literature service is asked for one record."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio

from orchestrator.cli.setup.forms import CheckOutput
from orchestrator.settings import Settings, load_settings
from posology.corpus.live.forms import Asked, ServiceName
from posology.errors import PosologyError

#: a query that finds something in each
_QUERY = "aspirin"
_SERVICES: tuple[ServiceName, ...] = ("pubmed", "europepmc")


def live_checks() -> Iterator[CheckOutput]:
    """Yield a check of each service; none raises."""
    try:
        settings = load_settings()
    except PosologyError:
        # the check of the configuration has said so
        return
    for name in _SERVICES:
        yield _tried(settings, name)


def _tried(settings: Settings, name: ServiceName) -> CheckOutput:
    from orchestrator.ingest.live.fetching import fetch_into

    asked = Asked(service=name, queries=(_QUERY,), limit=1)
    pubmed = name == "pubmed"
    url, variable = (
        (settings.eutils_url, "POSOLOGY_EUTILS_URL")
        if pubmed
        else (settings.europepmc_url, "POSOLOGY_EUROPEPMC_URL")
    )
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = anyio.run(lambda: fetch_into(settings, asked, Path(folder) / "fetch"))
    except PosologyError as error:
        return CheckOutput(
            name=name,
            ok=False,
            found=str(error),
            remedy=f"Allow this machine to reach {url}, or set {variable} to a copy that it reaches.",
        )
    size = sum(file.bytes for file in found.files)
    said = f"{url} sent {found.records} of {found.found:,} records for {_QUERY!r} ({size:,} bytes)"
    if pubmed and settings.ncbi_api_key is None:
        said += "; 3 requests a second, or 10 with NCBI_API_KEY"
    return CheckOutput(name=name, ok=True, found=said, remedy=None)
