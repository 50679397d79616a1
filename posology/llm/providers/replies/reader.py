"""A reply of a provider: its body, and the errors that it may be or hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from posology.errors import MalformedReply, ProviderError, UnusableReply
from posology.llm.providers.fields import counts
from posology.llm.providers.replies.faults import Fault, billed_nothing
from posology.llm.providers.translation import Vendor, quote, scrub
from posology.types import Served, Usage

#: bytes of a body that tell what it is, where it is no JSON
_BEGINNING = 2_000
_Came = TypeVar("_Came", bound=UnusableReply)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """A successful response whose body is a JSON object, not validated further."""

    body: Mapping[str, Any]
    request_id: str | None
    #: seconds from sending to the last byte; ``None``: it was read from a file
    latency: float | None
    #: seconds to wait before the next request, as the provider asks
    retry_after: float | None = None


class ReplyReader:
    """Reads bodies of one provider's replies, and makes the errors that they are or hold.

    Args:
        vendor: names of the provider.
        key: the API key, which no message repeats.
    """

    def __init__(self, vendor: Vendor, key: str) -> None:
        self._vendor = vendor
        self._key = key

    def failure(
        self, status: int, body: object, *, model: str, request_id: str | None = None
    ) -> ProviderError:
        """Return the error of a request that was refused with a status and a body."""
        fault = Fault.of(body)
        return self._vendor.refusal(
            fault,
            status=status,
            model=model,
            request_id=request_id,
            usage=Usage() if billed_nothing(status, fault) else None,
            secret=self._key,
        )

    def told(
        self,
        reply: Reply,
        fault: Fault,
        *,
        model: str,
        usage: Usage | None = None,
        served: Served | None = None,
        wrote: bool = False,
    ) -> ProviderError:
        """Return the error that a reply of status 200 holds.

        It is billed as its usage says. Without one, nothing was billed if the provider refused the request before any
        work; else that is unknown.

        Args:
            reply: holds the error.
            fault: the error.
            model: ``provider:name``.
            usage: of the reply, where it states one.
            served: service tier of the reply.
            wrote: whether the model wrote something before it failed.
        """
        if not counts(reply.body):
            usage = Usage() if billed_nothing(fault.status, fault) and not wrote else None
        return self._vendor.refusal(
            fault,
            status=fault.status,
            within=True,
            model=model,
            request_id=reply.request_id,
            retry_after=reply.retry_after,
            usage=usage,
            served=served,
            secret=self._key,
        )

    def unusable(
        self, reply: Reply, reason: str, *, model: str, usage: Usage | None = None
    ) -> ProviderError:
        """Return the error that a reply holds; else, that it is not in the provider's own format."""
        known: dict[str, Any] = {"model": model, "usage": usage}
        if (fault := Fault.within(reply.body)) is not None:
            return self.told(reply, fault, **known)
        return self.malformed(reason, request_id=reply.request_id, **known)

    def useless(self, reason: str, **known: Any) -> UnusableReply:
        """Return the error for a reply that came whole and cannot be used; the next one would be as this one."""
        return self._came(UnusableReply, reason, **known)

    def malformed(self, reason: str, **known: Any) -> MalformedReply:
        """Return the error for a reply that is not in the provider's own format."""
        return self._came(MalformedReply, reason, **known)

    def _came(
        self,
        kind: type[_Came],
        reason: str,
        *,
        model: str,
        request_id: str | None,
        usage: Usage | None = None,
        served: Served | None = None,
    ) -> _Came:
        provider = self._vendor.provider
        return kind(
            f"{provider}'s reply for {model} cannot be used: {reason}",
            provider=provider,
            model=model,
            status=200,
            request_id=request_id,
            usage=usage,
            served=served,
        )

    def body_of(self, content: bytes, *, model: str, request_id: str | None) -> Mapping[str, Any]:
        """Return the body of a response with status 200.

        Raises:
            MalformedReply: it is no JSON object, perhaps since it was cut.
            UnusableReply: it is a page for a browser, or a stream.
        """
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            body = None
        if isinstance(body, list) and len(body) == 1:
            # Gemini's errors
            (body,) = body
        if isinstance(body, dict):
            return body
        known: dict[str, Any] = {"model": model, "request_id": request_id}
        begins = content[:_BEGINNING].decode(errors="replace").removeprefix("\ufeff").strip()
        if begins.startswith("<"):
            raise self.useless(
                f"it is an HTML page, not JSON: check the base URL ({self._vendor.url_variable}) and the proxy",
                **known,
            )
        if begins.startswith(("data:", "event:")):
            raise self.useless(
                "it is a stream, which was not requested: let the server send whole replies",
                **known,
            )
        # a gateway's words; a reply that was cut is no message
        words = "" if begins.startswith(("{", "[")) else quote(scrub(begins, self._key))
        said = f" ({words})" if words else ""
        raise self.malformed(f"its body is not a JSON object{said}", **known)
