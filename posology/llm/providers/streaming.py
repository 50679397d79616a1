"""Calls whose replies are streamed: the base of adapters of models that write."""

from __future__ import annotations

import re
import time
from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import anyio
import httpx2

from posology.errors import (
    MalformedReply,
    PermissionRefused,
    ProviderError,
    RequestRejected,
)
from posology.llm.calls import Told
from posology.llm.pace import allowed, generation
from posology.llm.providers.replies.reader import Reply
from posology.llm.providers.streams.assembly import Assembly, NoReply
from posology.llm.providers.streams.receiving import Incoming, receive
from posology.llm.providers.translation import Vendor
from posology.llm.providers.wire import TRANSPORT_ERRORS, SdkAdapter, named
from posology.seams import Send
from posology.types import Call, Completion, Usage

#: fields of a request that may be refused, and the words of such a refusal, of which Amazon's name the permission that is missing
_REFUSED = {
    "return_progress": re.compile("return_progress"),
    "stream_options": re.compile("stream_options|include_usage"),
    "stream": re.compile(r"\bstream(?:ed|ing)?\b|ResponseStream", re.IGNORECASE),
}


#: Bound on output tokens from which on a provider's own service is asked for a stream: below it, a reply is written well
#: within the limit on silence, and a stream costs a multiple of the processor time
LONG = 2_048


class StreamingAdapter(SdkAdapter):
    """The base of adapters that ask for streamed replies.

    Args:
        vendor: names, addresses and errors of the SDK.
        client: the SDK's class of clients.
        stream: whether replies in words are streamed.
        options: of :class:`~posology.llm.providers.wire.SdkAdapter`.
    """

    #: whether a reply that repeats itself without an end is cut. A provider would not say what that cost
    CUTS: ClassVar[bool] = False

    def __init__(self, vendor: Vendor, client: Any, *, stream: bool, **options: Any) -> None:
        super().__init__(vendor, client, **options)
        self._stream = stream
        #: models, and the fields of a request for a stream that their server refused
        self._refused: set[tuple[str, str]] = set()

    @abstractmethod
    async def __call__(
        self, call: Call, *, attempt_id: str | None = None, told: Told | None = None
    ) -> Completion:
        """Send one call; see :class:`~posology.seams.Send`. ``told`` takes the progress of a streamed reply."""

    def telling(self, told: Told) -> Send:
        """Return what sends a call as this does, and tells how far its reply is."""
        return partial(self.__call__, told=told)

    def stream_fields(self) -> Mapping[str, Any]:
        """Return the fields with which a request asks for a stream."""
        return {"stream": True}

    @abstractmethod
    def assembly(self) -> Assembly:
        """Return what puts a streamed reply together."""

    @abstractmethod
    def usage_of(self, body: Mapping[str, Any], *, wrote: bool = False) -> Usage | None:
        """Return the usage that a body states; ``None``: none that can be believed."""

    async def _say(
        self,
        call: Call,
        path: str,
        body: Mapping[str, Any],
        attempt_id: str | None,
        told: Told | None,
    ) -> Reply:
        """Send one call whose reply is in words: streamed, unless that is off, of no use, or the server refuses it.

        A field that is refused is left out from then on.

        Raises:
            ProviderError: see :meth:`_send`.
            ConfigurationError: the request may not leave this machine.
        """
        while fields := self._asks(call, watched=told is not None):
            try:
                return await self._streamed(call, path, {**body, **fields}, attempt_id, told)
            except (RequestRejected, PermissionRefused) as error:
                blamed = next((f for f in fields if _REFUSED[f].search(error.message)), None)
                if blamed is None:
                    raise
                self._refused.add((call.model, blamed))
        return await self._send(call, path, body, attempt_id)

    def _asks(self, call: Call, *, watched: bool) -> Mapping[str, Any]:
        """Return the fields with which a call asks for a stream; empty: it does not."""
        model = call.model
        if not self._stream or (model, "stream") in self._refused:
            return {}
        own = self._base_url.rstrip("/") == self._vendor.base_url or not self._vendor.base_url
        if own and self._floor is None and call.max_tokens < LONG and not watched:
            return {}
        # the narrowest first, as its name may hold another's
        fields = self.stream_fields()
        return {
            name: fields[name]
            for name in _REFUSED
            if name in fields and (model, name) not in self._refused
        }

    async def _streamed(
        self,
        call: Call,
        path: str,
        body: Mapping[str, Any],
        attempt_id: str | None,
        told: Told | None,
    ) -> Reply:
        """Send one call, and put its streamed reply together.

        The limits are on silence, so that a slow reply is not taken for none: until the model writes, and between two
        pieces of what it writes. The deadline of the call ends a stream that does not end.
        """
        first = allowed(call.tier, self._timeout) + generation(call.max_tokens, self._floor)
        started, began = time.perf_counter(), anyio.current_time()
        response = await self._respond(
            "post",
            path,
            model=call.model,
            seconds=first,
            headers=named(attempt_id),
            body=body,
            stream=True,
        )
        heard = self._heard(response)
        incoming = Incoming(self.assembly(), response.headers.get("content-type", ""))
        try:
            failure = await self._receive(response, incoming, call, told, first=first, began=began)
        finally:
            # before the end of its body, that closes the connection
            with anyio.CancelScope(shield=True):
                await response.aclose()
        return Reply(
            body=self._body(incoming, failure, model=call.model, request_id=heard["request_id"]),
            latency=time.perf_counter() - started,
            **heard,
        )

    async def _receive(
        self,
        response: httpx2.Response,
        incoming: Incoming,
        call: Call,
        told: Told | None,
        *,
        first: float,
        began: float,
    ) -> ProviderError | None:
        """Receive a response; return what kept it from its end."""
        between = allowed(call.tier, self._timeout)
        try:
            if await receive(
                response.aiter_bytes(),
                incoming,
                first=first,
                between=between,
                began=began,
                told=None if told is None else partial(told, call),
                cuts=self.CUTS,
            ):
                return None
        except NoReply as error:
            return self.malformed(str(error), model=call.model, request_id=None)
        except (self._vendor.error, *TRANSPORT_ERRORS) as error:
            return self._translate(error, call.model)
        return self._silence(call.model, between if incoming.assembly.began else first)

    def _body(
        self,
        incoming: Incoming,
        failure: ProviderError | None,
        *,
        model: str,
        request_id: str | None,
    ) -> Mapping[str, Any]:
        """Return the body of a reply that was received.

        Raises:
            ProviderError: the server was silent, or the reply was cut; without a usage, unless it had come.
        """
        if not incoming.streamed and failure is None:
            return self.body_of(bytes(incoming.content), model=model, request_id=request_id)
        body = incoming.assembly.body()
        if incoming.assembly.ended and not isinstance(failure, MalformedReply):
            return body
        reason = "its stream ended in the middle of the reply"
        failure = failure or self.malformed(reason, model=model, request_id=request_id)
        known = {"usage": self.usage_of(body, wrote=True), "request_id": request_id}
        raise type(failure)(failure.message, **(failure.details | known))
