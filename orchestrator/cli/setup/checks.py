"""The checks of ``posology doctor``: each looks at one thing and says what to do about it."""

from __future__ import annotations

import platform
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from orchestrator.cli.setup.forms import CheckOutput
from orchestrator.settings import DEFAULT_MODEL, Settings, load_settings, local_providers, origins
from posology.corpus.live.forms import Asked, ServiceName
from posology.errors import ConfigurationError, PosologyError

if TYPE_CHECKING:
    from posology.llm.providers.local.servers import Server

#: a query that finds something in each
_QUERY = "aspirin"
_SERVICES: tuple[ServiceName, ...] = ("pubmed", "europepmc", "clinicaltrials")
#: a DOI that Unpaywall knows
_DOI = "10.1038/nature12373"
#: first version of Python that is supported
_PYTHON = (3, 11)
_GIB = 1024**3
#: free bytes on disk below which an ingest will fail, and below which a large one may
_DISK, _MUCH_DISK = _GIB, 10 * _GIB
#: MiB of memory below which encoding fails, and below which workers share the encoder's memory badly
_MEMORY, _MUCH_MEMORY = 1_024, 4_096
#: seconds for Redis to reply
_REPLY = 5.0
#: seconds for a proxy to accept a connection
_CONNECT = 3.0
_PORT = 8000


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """Input of the checks."""

    settings: Settings
    environment: Mapping[str, str]
    #: given with ``--index``; ``None``: as configured
    index: str | None


def checks(environment: Mapping[str, str], index: str | None) -> Iterator[CheckOutput]:
    """Yield the result of each check; none raises.

    Args:
        environment: of this process; its ``PATH`` is searched for ``redis-server``.
        index: place of the index; ``None``: as configured.
    """
    yield _python()
    try:
        settings = load_settings()
    except PosologyError as error:
        yield _bad("configuration", str(error), "Correct it; the other checks need it.")
        return
    machine = Machine(settings=settings, environment=environment, index=index)
    for name, check in _CHECKS.items():
        try:
            yield check(machine)
        except PosologyError as error:
            yield _bad(name, str(error), "Do what the message says.")
        except OSError as error:
            yield _bad(name, error.strerror or str(error), "Check the rights and the path.")


def _python() -> CheckOutput:
    found = f"{platform.python_version()} on {platform.platform()}"
    if sys.version_info < _PYTHON:
        return _bad("python", found, "Install Python 3.11 or newer.")
    return _good("python", found)


def _configuration(machine: Machine) -> CheckOutput:
    sources = {one.source for one in origins(machine.settings)} - {"default"}
    return _good("configuration", f"from {', '.join(sorted(sources)) or 'defaults'}")


def _redis(machine: Machine) -> CheckOutput:
    from orchestrator.jobs.place import known_store
    from orchestrator.stack.ping import Ping, ping
    from orchestrator.stack.redis_server import find_server
    from posology.store.connection import shown

    url = known_store(machine.settings)
    if url is None:
        server = find_server(machine.environment.get("PATH"))
        return _good("redis", f"no stack runs; `posology up` starts {server}")

    async def asked() -> Ping:
        with anyio.move_on_after(_REPLY):
            return await ping(url)
        return Ping.SILENT

    reply = anyio.run(asked)
    if reply is Ping.SILENT:
        return _bad(
            "redis", f"{shown(url)} does not reply", "Start it, or correct POSOLOGY_REDIS_URL."
        )
    return _good("redis", f"{shown(url)} is {reply}")


def _disk(machine: Machine) -> CheckOutput:
    place = Path(machine.settings.home).absolute()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    found = f"{free / _GIB:.1f} GiB free for {machine.settings.home}"
    if free < _DISK:
        return _bad("disk", found, "Free some space, or set POSOLOGY_HOME to another disk.")
    if free < _MUCH_DISK:
        return _remark("disk", found, "100,000 abstracts take about 6 GiB.")
    return _good("disk", found)


def _memory(machine: Machine) -> CheckOutput:  # noqa: ARG001 - as all checks
    from orchestrator.stack.redis_server import half_of_memory

    total = 2 * half_of_memory()
    found = f"{total / 1024:.1f} GiB"
    if total < _MEMORY:
        return _bad("memory", found, "Use a machine with at least 1 GiB; the encoder needs it.")
    if total < _MUCH_MEMORY:
        return _remark("memory", found, "Run one worker: each loads an encoder.")
    return _good("memory", found)


def _encoder(machine: Machine) -> CheckOutput:
    from orchestrator.models import Models
    from posology.hub import DEFAULT

    settings = machine.settings
    name = settings.embedder or DEFAULT
    if name.startswith("openai:"):
        return _good("encoder", f"{name} (paid, not called)")
    embedder = Models(settings.embedder, settings.embedding).embedder()
    embedder.encode_query("Does aspirin help?")
    return _good("encoder", f"{embedder.name}, {embedder.dim} dimensions")


def _index(machine: Machine) -> CheckOutput:
    from orchestrator.service import index_place
    from posology.index.connection import require
    from posology.index.store import Index

    if machine.index is None and machine.settings.index is None:
        return _remark(
            "index", "none is configured", "Build one: posology ingest PATH --index ./index"
        )
    place = index_place(machine.settings, machine.index)
    require(place)
    index = Index.open(place)
    return _good("index", f"{index.count():,} passages at {place}, made with {index.meta.embedder}")


def _keys(machine: Machine) -> CheckOutput:
    from orchestrator.settings import key_providers, needs_key

    settings = machine.settings
    there = [name for name in key_providers() if settings.credentials(name).api_key]
    provider = settings.model.partition(":")[0]
    summary = f"keys of {', '.join(there)}" if there else "no keys"
    if needs_key(provider) and provider not in there:
        # a server of one's own may need none
        if settings.credentials(provider).base_url:
            return _remark("keys", f"{summary}; {settings.model} is on a server of yours", "")
        return _bad(
            "keys", f"{summary}; {settings.model} needs one", f"posology keys set {provider}"
        )
    if not there:
        return _remark(
            "keys",
            f"{summary}; {settings.model} needs none",
            "For a language model: posology keys set openai",
        )
    return _good("keys", summary)


def _model(machine: Machine) -> CheckOutput:
    from datetime import UTC, datetime

    from posology.llm.models.families import retirement_warning

    model = machine.settings.model
    if warning := retirement_warning(model, datetime.now(tz=UTC).date()):
        return _remark("model", f"{model}: {warning}", "Choose another: posology models list")
    return _good("model", model)


def _servers(machine: Machine) -> CheckOutput:
    servers = running_servers(machine.settings)
    provider, _, name = machine.settings.model.partition(":")
    if provider in local_providers():
        server = next((one for one in servers if one.kind.name == provider), None)
        if server is None:
            return _bad(
                "servers",
                f"no server answers for {machine.settings.model}",
                "Start it, load its model, or set its address: posology config show",
            )
        server.model(name)
    if not servers:
        return _good("servers", f"none of {', '.join(local_providers())} answers at its address")
    from posology.llm.providers.local.servers import described

    return _good(
        "servers",
        "; ".join(
            f"{described(one)}: --model {one.kind.name}:{one.models[0].name}" for one in servers
        ),
    )


def running_servers(settings: Settings) -> tuple[Server, ...]:
    """Return the model servers that answer at their addresses."""
    from posology.llm.providers.local.servers import running

    addresses = {name: settings.credentials(name).base_url for name in local_providers()}
    return anyio.run(running, addresses)


def _network(machine: Machine) -> CheckOutput:
    from posology.network.certificates import FILE, FOLDER, OTHERS, authorities, check_other
    from posology.network.proxies import proxies

    try:
        authorities()
        configured = proxies()
    except ConfigurationError as error:
        return _bad("network", *_advised(error))
    for proxy in configured:
        try:
            socket.create_connection(proxy.place, timeout=_CONNECT).close()
        except OSError:
            return (_bad if _goes_out(machine.settings) else _remark)(
                "network",
                f"the proxy {proxy} does not accept connections",
                "Start it, correct the variable, or name hosts that need no proxy in NO_PROXY.",
            )
    for variable, use in OTHERS.items():
        try:
            check_other(variable)
        except ConfigurationError as error:
            reason, remedy = _advised(error)
            return _remark("network", f"{reason} (read only {use})", remedy)
    named = (
        f"{name}={value}" for name in (FILE, FOLDER) if (value := machine.environment.get(name))
    )
    said = ", ".join((*(f"proxy {proxy}" for proxy in configured), *islice(named, 1)))
    return _good("network", said or "no proxy, the system's certificates")


def _advised(error: ConfigurationError) -> tuple[str, str]:
    """Return what is wrong with a variable, and what to do about it."""
    reason, _, remedy = error.message.rpartition(": ")
    return reason, f"{remedy[:1].upper()}{remedy[1:]}."


def _goes_out(settings: Settings) -> bool:
    """Return whether the model is on another machine."""
    from posology.network.hosts import is_loopback

    provider = settings.model.partition(":")[0]
    if provider == DEFAULT_MODEL.partition(":")[0]:
        return False
    try:
        return not is_loopback(settings.address(provider) or "")
    except KeyError:
        # there is no such provider
        return False


def _ports(machine: Machine) -> CheckOutput:
    from orchestrator.stack.folder import read_stack
    from orchestrator.stack.ports import port_is_free

    stack = read_stack(Path(machine.settings.home))
    if stack is not None and stack.api_url:
        return _good("ports", f"the API runs at {stack.api_url}")
    if not port_is_free("127.0.0.1", _PORT):
        return _remark(
            "ports",
            f"another program uses port {_PORT}",
            "posology up --port 0 takes any free port.",
        )
    return _good("ports", f"port {_PORT} is free")


def _good(name: str, found: str) -> CheckOutput:
    return CheckOutput(name=name, ok=True, found=found, remedy=None)


def _remark(name: str, found: str, remedy: str) -> CheckOutput:
    return CheckOutput(name=name, ok=None, found=found, remedy=remedy or None)


def _bad(name: str, found: str, remedy: str) -> CheckOutput:
    return CheckOutput(name=name, ok=False, found=found, remedy=remedy)


_CHECKS: Mapping[str, Callable[[Machine], CheckOutput]] = {
    "configuration": _configuration,
    "redis": _redis,
    "disk": _disk,
    "memory": _memory,
    "encoder": _encoder,
    "index": _index,
    "keys": _keys,
    "model": _model,
    "servers": _servers,
    "network": _network,
    "ports": _ports,
}


def live_checks() -> Iterator[CheckOutput]:
    """Yield a check of each service; none raises."""
    try:
        settings = load_settings()
    except PosologyError:
        # the check of the configuration has said so
        return
    for name in _SERVICES:
        yield _tried(settings, name)
    yield _unpaywall(settings)


def _tried(settings: Settings, name: ServiceName) -> CheckOutput:
    from orchestrator.ingest.live.fetching import fetch_into

    asked = Asked(service=name, queries=(_QUERY,), limit=1)
    url = {
        "pubmed": settings.eutils_url,
        "europepmc": settings.europepmc_url,
        "clinicaltrials": settings.clinicaltrials_url,
    }[name]
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = anyio.run(lambda: fetch_into(settings, asked, Path(folder) / "fetch"))
    except PosologyError as error:
        return _out_of_reach(name, url, error)
    size = sum(file.bytes for file in found.files)
    said = f"{url} sent {found.records} of {found.found:,} records for {_QUERY!r} ({size:,} bytes)"
    if name == "pubmed" and settings.ncbi_api_key is None:
        said += "; 3 requests a second, or 10 with NCBI_API_KEY"
    return CheckOutput(name=name, ok=True, found=said, remedy=None)


def _unpaywall(settings: Settings) -> CheckOutput:
    from orchestrator.ingest.live.services import open_places
    from posology.corpus.live.forms import Wanted

    name = "unpaywall"
    if not settings.email:
        return _remark(name, "not asked, since it needs an address", "Set POSOLOGY_EMAIL.")

    async def asked() -> str:
        async with open_places(settings) as places:
            found = await places[-1].find([Wanted(record=_DOI, pmcid=None, doi=_DOI)])
        return found.copies.get(_DOI) or found.why[_DOI]

    try:
        said = anyio.run(asked)
    except PosologyError as error:
        return _out_of_reach(name, settings.unpaywall_url, error)
    return _good(name, f"{settings.unpaywall_url} says of {_DOI}: {said}")


def _out_of_reach(name: str, url: str, error: PosologyError) -> CheckOutput:
    variable = {"pubmed": "EUTILS"}.get(name, name.upper())
    return _bad(
        name,
        str(error),
        f"Allow this machine to reach {url}, or set POSOLOGY_{variable}_URL to a copy that it reaches.",
    )
