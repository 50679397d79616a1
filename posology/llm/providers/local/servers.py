"""Local servers: their models, the models' windows, and the number of calls that they serve at once.

Sources: llama.cpp's ``tools/server/README.md`` (``/v1/models``, ``/props``), Ollama's ``docs/api.md`` (``/api/tags``,
``/api/show``, ``/api/ps``), LM Studio's REST API v0 (``/api/v0/models``) and vLLM's ``/v1/models``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2

from posology.errors import MalformedReply, ModelNotFound, ProviderUnreachable
from posology.llm import switch
from posology.llm.providers.fields import count, section
from posology.llm.providers.local.kinds import KINDS, Kind
from posology.network.clients import checked_url, http_client
from posology.types import Usage

#: seconds for a server to describe itself
SECONDS = 10.0
#: models that a description names
_SHOWN = 3
#: models that an error names
_NAMED = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Served:
    """A model of a server."""

    #: as requests name it
    name: str
    #: tokens of input and output together; ``None``: the server does not say
    window: int | None = None
    #: whether it is in memory, so that its window is settled
    loaded: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Server:
    """A server, as it describes itself."""

    kind: Kind
    #: base URL, without ``/v1``
    address: str
    #: those that write text
    models: tuple[Served, ...]
    #: calls that it serves at once; ``None``: it does not say
    slots: int | None = None

    def find(self, name: str) -> Served | None:
        """Return a model by its name, in any case, or by its file's name; ``None``: it is not served."""
        wanted = name.lower()
        exact = [one for one in self.models if one.name.lower() in (wanted, f"{wanted}:latest")]
        files = [one for one in self.models if wanted in _file_names(one.name.lower())]
        return next(iter((*exact, *files)), None)

    def model(self, name: str) -> Served:
        """Return a model by its name.

        Raises:
            ModelNotFound: it is not served; the message names those that are.
        """
        if (found := self.find(name)) is not None:
            return found
        names = [f"{self.kind.name}:{one.name}" for one in self.models]
        more = ", …" if len(names) > _NAMED else ""
        serves = f"it serves {', '.join(names[:_NAMED])}{more}" if names else "it serves no model"
        raise ModelNotFound(
            f"{self.kind.title} at {self.address} has no model {name!r}: {serves}",
            provider=self.kind.name,
            model=f"{self.kind.name}:{name}",
            usage=Usage(),
        )


def _file_names(name: str) -> tuple[str, ...]:
    """Return the names of a model that is served under the path of its file."""
    path = PurePosixPath(name)
    return (path.name, path.stem) if path.suffix == ".gguf" else ()


def root_of(kind: Kind, base_url: str | None) -> str:
    """Return a server's address without ``/v1``.

    Args:
        kind: of the server.
        base_url: as configured; Ollama's variable may lack scheme and port. ``None``: the default address.

    Raises:
        ConfigurationError: it is not an address.
    """
    url = base_url or kind.address
    if "://" not in url:
        # a host, a port or both, as OLLAMA_HOST takes them
        host, colon, port = url.rpartition(":") if not url.endswith("]") else (url, "", "")
        if not colon:
            host, port = url, ""
        url = f"http://{host or '127.0.0.1'}:{port or urlsplit(kind.address).port}"
    checked = checked_url(url, variable=kind.url_variable)
    # the address that a server listens on for all networks
    return checked.removesuffix("/v1").replace("//0.0.0.0", "//127.0.0.1")


async def served(
    kind: Kind, base_url: str | None = None, *, key: str | None = None, seconds: float = SECONDS
) -> Server:
    """Ask a server what it is.

    Args:
        kind: of the server.
        base_url: as configured; ``None``: the default address.
        key: API key; ``None``: none is sent.
        seconds: timeout.

    Raises:
        ProviderUnreachable: nothing answers at the address.
        MalformedReply: another service answers there.
        ConfigurationError: it is not an address.
    """
    root = root_of(kind, base_url)
    switch.check(root)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with http_client(root, timeout=seconds, base_url=root, headers=headers) as http:
        return await _READERS[kind.name](_Asker(http=http, kind=kind, root=root))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asker:
    """Asks one server."""

    http: httpx2.AsyncClient
    kind: Kind
    root: str

    async def get(self, path: str, body: Any = None) -> Mapping[str, Any]:
        """Return the JSON object at a path; empty: the server has no such path.

        Args:
            path: below the address.
            body: of a POST request; ``None``: a GET request.
        """
        known: dict[str, Any] = {"provider": self.kind.name, "model": self.kind.name}
        try:
            if body is None:
                response = await self.http.get(path)
            else:
                response = await self.http.post(path, json=body)
        except (httpx2.HTTPError, OSError):
            raise ProviderUnreachable(
                f"{self.kind.title} does not answer at {self.root}: start it, or set {self.kind.url_variable}",
                usage=Usage(),
                **known,
            ) from None
        if response.status_code in (404, 405):
            return {}
        try:
            answer = json.loads(response.content) if response.status_code == 200 else None
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise MalformedReply(
                f"{self.root}{path} answered {response.status_code} and no list of models: check "
                f"{self.kind.url_variable}",
                status=response.status_code,
                usage=Usage(),
                **known,
            )
        return answer


async def _llamacpp(ask: _Asker) -> Server:
    listed, props = await ask.get("/v1/models"), await ask.get("/props")
    window = count(section(props, "default_generation_settings").get("n_ctx"))
    models = [
        Served(name=name, window=window or count(section(row, "meta").get("n_ctx")))
        for row in _rows(listed, "data")
        for name in {row.get("id"): None, **dict.fromkeys(row.get("aliases") or ())}
        if isinstance(name, str)
    ]
    return _server(ask, models, slots=count(props.get("total_slots")))


async def _vllm(ask: _Asker) -> Server:
    listed = await ask.get("/v1/models")
    models = [
        Served(name=str(row["id"]), window=count(row.get("max_model_len")))
        for row in _rows(listed, "data")
        if "id" in row
    ]
    return _server(ask, models)


async def _lmstudio(ask: _Asker) -> Server:
    rows = _rows(await ask.get("/api/v0/models"), "data")
    if not rows:
        return await _vllm(ask)
    models = []
    for row in rows:
        if row.get("type") == "embeddings":
            continue
        loaded = row.get("state") != "not-loaded"
        # one that is not in memory is loaded with a window that the server chooses
        window = count(row.get("loaded_context_length")) if loaded else None
        models.append(Served(name=str(row.get("id")), window=window, loaded=loaded))
    return _server(ask, models)


async def _ollama(ask: _Asker) -> Server:
    listed, running = await ask.get("/api/tags"), await ask.get("/api/ps")
    windows = {
        row.get("name"): count(row.get("context_length")) for row in _rows(running, "models")
    }
    names = [str(row["name"]) for row in _rows(listed, "models") if "name" in row]
    models = [Served(name=n, window=windows.get(n), loaded=n in windows) for n in names]
    return _server(ask, models)


def _server(ask: _Asker, models: list[Served], *, slots: int | None = None) -> Server:
    return Server(kind=ask.kind, address=ask.root, models=tuple(models), slots=slots or None)


def _rows(body: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    rows = body.get(key)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


_READERS: Mapping[str, Callable[[_Asker], Awaitable[Server]]] = MappingProxyType(
    {
        "ollama": _ollama,
        "lmstudio": _lmstudio,
        "llamacpp": _llamacpp,
        "vllm": _vllm,
        "gguf": _llamacpp,
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class OllamaModel:
    """A model of Ollama, as ``/api/show`` describes it."""

    #: tokens that it was trained to read; ``None``: unknown
    trained: int | None
    #: ``num_ctx`` of its Modelfile; ``None``: it has none
    window: int | None
    #: whether it can reason before it replies
    thinks: bool


def read_ollama_model(body: Mapping[str, Any]) -> OllamaModel:
    """Read the reply of ``/api/show``."""
    info = section(body, "model_info")
    trained = (count(value) for name, value in info.items() if name.endswith(".context_length"))
    own = re.search(r"^num_ctx\s+(\d+)", str(body.get("parameters") or ""), re.MULTILINE)
    return OllamaModel(
        trained=next(trained, None),
        window=int(own[1]) if own else None,
        thinks="thinking" in (body.get("capabilities") or ()),
    )


def described(server: Server) -> str:
    """Return what a server serves, for people: ``llama.cpp at http://… serves qwen3 (window 8,192, 1 at a time)``."""
    first, *others = server.models
    facts = [
        *([f"window {first.window:,}"] if first.window else []),
        *([f"{server.slots} at a time"] if server.slots else []),
    ]
    names = [f"{first.name} ({', '.join(facts)})" if facts else first.name]
    names += [one.name for one in others[: _SHOWN - 1]]
    more = f" and {len(others) - _SHOWN + 1} more" if len(others) >= _SHOWN else ""
    title = server.kind.title
    return f"{title} at {server.address} serves {', '.join(names)}{more}"


async def running(
    addresses: Mapping[str, str | None], *, seconds: float = 1.0
) -> tuple[Server, ...]:
    """Return the servers that run, asked at once; those without a model are left out.

    Args:
        addresses: base URL by provider; ``None``: its default address.
        seconds: timeout of each.
    """
    servers: dict[str, Server] = {}

    async def look(kind: str, address: str | None) -> None:
        try:
            server = await served(KINDS[kind], address, seconds=seconds)
        except (ProviderUnreachable, MalformedReply):
            return
        # a service of another kind may list models at the same address, such as our own
        if any(one.window or kind != "vllm" for one in server.models):
            servers[kind] = server

    async with anyio.create_task_group() as group:
        for kind, address in addresses.items():
            group.start_soon(look, kind, address)
    return tuple(servers[kind] for kind in addresses if kind in servers)
