"""Calls to servers of one's own: fitted to their window, never more at once than they serve."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, ClassVar

import anyio

from posology.errors import ProviderError
from posology.llm.calls import Told
from posology.llm.providers.fields import count
from posology.llm.providers.local.kinds import Kind
from posology.llm.providers.local.servers import Served, Server, root_of, served
from posology.llm.providers.openai import VENDOR, OpenAIAdapter
from posology.llm.providers.windows import check_whole, fitted, likely_tokens, most_tokens
from posology.types import Call, Completion

#: sent to a server that takes no key
_NO_KEY = "none"


class LocalAdapter(OpenAIAdapter):
    """A :class:`~posology.seams.Send` over a local server with OpenAI's API.

    The server is asked once what it serves, and again after a failure: it may have been started anew.

    Args:
        kind: of the server.
        api_key: ``None``: the server takes none.
        base_url: its address, with or without ``/v1``; ``None``: the default one.
        options: of :class:`~posology.llm.providers.openai.OpenAIAdapter`.

    Raises:
        ConfigurationError: the key or the address is malformed.
    """

    #: what follows the address in the base URL of its API
    API: ClassVar[str] = "/v1"
    CUTS = True

    def __init__(
        self, kind: Kind, *, api_key: str | None, base_url: str | None, **options: Any
    ) -> None:
        self._kind = kind
        self._root = root_of(kind, base_url)
        self._server: Server | None = None
        self._asking = anyio.Lock()
        super().__init__(
            api_key=api_key or _NO_KEY,
            base_url=f"{self._root}{self.API}",
            legacy_max_tokens=True,
            # whose own address stays OpenAI's: this is a server with its API
            vendor=replace(
                VENDOR,
                provider=kind.name,
                key_variable=kind.key_variable,
                url_variable=kind.url_variable,
            ),
            **options,
        )

    async def __call__(
        self, call: Call, *, attempt_id: str | None = None, told: Told | None = None
    ) -> Completion:
        """Send one call; see :class:`~posology.seams.Send`.

        Raises:
            ModelNotFound: the server does not serve the model; nothing was sent.
            ContextTooLong: the call does not fit the window, or the server cut its prompt.
            ProviderError: in its other kinds.
        """
        async with self.checked():
            model = (await self.server()).model(self._name(call.model))
            named = replace(call, model=f"{self.provider}:{model.name}")
            window = await self.window(model)
            ready = named if window is None else await self._fit(named, window)
            completion = await super().__call__(ready, attempt_id=attempt_id, told=told)
            check_whole(ready, completion, window=window)
            return completion

    async def server(self) -> Server:
        """Return what the server says of itself, asked once.

        Raises:
            ProviderUnreachable: nothing answers at the address.
            MalformedReply: another service answers there.
        """
        async with self._asking:
            if self._server is None:
                self._server = await served(self._kind, self._root, key=self._key)
            return self._server

    async def slots(self) -> int | None:
        """Return how many calls the server serves at once; ``None``: it does not say, or does not answer."""
        try:
            return (await self.server()).slots
        except ProviderError:
            # the call says so
            return None

    @asynccontextmanager
    async def checked(self) -> AsyncGenerator[None]:
        """Ask the server anew after a failure within."""
        try:
            yield
        except ProviderError:
            self._server = None
            raise

    async def window(self, model: Served) -> int | None:
        """Return the tokens of input and output together that the server has for a model; ``None``: it does not say."""
        if not model.loaded:
            # the call loads it; the next one asks for its window
            self._server = None
        return model.window

    async def count(self, call: Call) -> int:
        """Return the input tokens of a call, as the server's tokenizer counts them; see :class:`TokenCounter`."""
        body = {
            key: value for key, value in self.body(call).items() if key in ("model", "messages")
        }
        # absolute, since it stands beside the API's own paths
        path = (
            f"{self._root}/tokenize"
            if self.provider == "vllm"
            else "/chat/completions/input_tokens"
        )
        reply = await self.request("post", path, model=call.model, body=body)
        counted = count(reply.body.get("count", reply.body.get("input_tokens")))
        if counted is None:
            raise self.malformed(
                "it has no count of tokens", request_id=reply.request_id, model=call.model
            )
        return counted

    async def _fit(self, call: Call, window: int) -> Call:
        """Return a call that fits a window; see :func:`~posology.llm.providers.windows.fitted`.

        Where its bound may not fit, the server counts it, or else it is estimated.
        """
        tokens = most_tokens(call)
        if tokens + call.max_tokens > window:
            tokens = likely_tokens(call)
            if self._kind.counts:
                # an older server, or a gateway before it, may not count
                with suppress(ProviderError):
                    tokens = await self.count(call)
        return fitted(call, window, tokens)

    def _chat(self, call: Call) -> dict[str, Any]:
        body = super()._chat(call)
        if call.effort == "none":
            # not every server knows the level; llama.cpp and vLLM hand this to the chat template, others ignore it
            del body["reasoning_effort"]
            body["chat_template_kwargs"] = {"enable_thinking": False}
        return body
