"""Models out of files: llama.cpp in a process of our own, started on first use."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from anyio import to_thread

from posology.errors import ModelNotFound
from posology.llm.calls import Told
from posology.llm.providers.local.adapter import LocalAdapter
from posology.llm.providers.local.kinds import GGUF, WINDOW
from posology.llm.providers.local.process import Running, Wanted, ensure, touch
from posology.seams import Send
from posology.types import Call, Completion, Usage

#: what a file of a model begins with
_MAGIC = b"GGUF"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Connected:
    running: Running
    adapter: LocalAdapter


class GgufAdapter:
    """A :class:`~posology.seams.Send` over files of models, each served by a process that all processes of a home share.

    Args:
        home: data folder.
        idle: seconds without a call after which a server ends.
        window: tokens of input and output together; ``None``: :data:`~posology.llm.providers.local.kinds.WINDOW`.
        options: of :class:`~posology.llm.providers.openai.OpenAIAdapter`.
    """

    def __init__(self, *, home: Path, idle: float, window: int | None, **options: Any) -> None:
        self._folder = home.absolute() / "gguf"
        self._idle = idle
        self._window = window or WINDOW
        self._options = options
        self._connected: dict[Path, _Connected] = {}

    async def __call__(
        self, call: Call, *, attempt_id: str | None = None, told: Told | None = None
    ) -> Completion:
        """Send one call; see :class:`~posology.seams.Send`.

        Raises:
            ModelNotFound: there is no such file, or it is no model.
            ModelUnavailable: it cannot be served.
            ProviderError: in its other kinds.
        """
        path = model_file(call.model)
        wanted = Wanted(
            model=str(path), folder=str(self._folder), window=self._window, idle=self._idle
        )
        running = await to_thread.run_sync(ensure, wanted, abandon_on_cancel=True)
        adapter = await self._adapter(path, running)
        touch(wanted)
        try:
            ready = replace(call, model=f"{GGUF.name}:{path.stem}")
            return await adapter(ready, attempt_id=attempt_id, told=told)
        finally:
            touch(wanted)

    def telling(self, told: Told) -> Send:
        """Return what sends a call as this does, and tells how far its reply is."""
        return partial(self.__call__, told=told)

    async def aclose(self) -> None:
        """Close the connections; the servers go on."""
        while self._connected:
            await self._connected.popitem()[1].adapter.aclose()

    async def _adapter(self, path: Path, running: Running) -> LocalAdapter:
        """Return what talks to a server, and replace it when the server was started anew."""
        known = self._connected.get(path)
        if known is None or known.running != running:
            adapter = LocalAdapter(
                GGUF, api_key=running.key, base_url=running.address, **self._options
            )
            self._connected[path] = _Connected(running=running, adapter=adapter)
            if known is not None:
                await known.adapter.aclose()
        return self._connected[path].adapter


def model_file(model: str) -> Path:
    """Return the file of a model, ``gguf:PATH``.

    Raises:
        ModelNotFound: there is no such file, or it is no model.
    """
    path = Path(model.strip().partition(":")[2]).expanduser().absolute()
    known: dict[str, Any] = {"provider": GGUF.name, "model": model, "usage": Usage()}
    try:
        with path.open("rb") as file:
            begins = file.read(len(_MAGIC))
    except OSError as error:
        raise ModelNotFound(
            f"{path}: {error.strerror}: name a file of a model, as in gguf:models/qwen3-8b.gguf",
            **known,
        ) from None
    if begins != _MAGIC:
        raise ModelNotFound(
            f"{path} is no GGUF file: use a model in llama.cpp's format, from a hub or made by its converter",
            **known,
        )
    return path
