"""One attempt to deliver a message: the host is resolved and checked, and this very address is called."""

from __future__ import annotations

import re
import ssl
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

import anyio
import httpx2

from orchestrator.webhooks.targets import Networks, TargetRefused, resolve
from posology.network.clients import http_client
from posology.version import __version__

#: seconds for one attempt, from the look-up of the name to the response
TIMEOUT = 15.0
#: seconds for a connection to one of the host's addresses
_CONNECT = 5.0
#: addresses of a host that are tried
_ADDRESSES = 3
#: bytes of a response that are read, and characters of it that are kept
_READ, KEPT = 1_024, 200
_UNPRINTABLE = re.compile(
    r"[^\x20-\x7e\xa0-\u200a\u2010-\u2027\u2030-\u205f\u2070-\ufefe\uff00-\uffef]+"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """Result of an attempt."""

    #: HTTP status; ``None``: no response
    status: int | None
    #: why it failed, at most :data:`KEPT` characters; empty: it did not
    error: str = ""
    #: seconds that the endpoint asks to wait; ``None``: it does not say
    after: float | None = None

    @property
    def delivered(self) -> bool:
        """Whether the endpoint took the message."""
        return self.status is not None and 200 <= self.status < 300


class Delivery:
    """Sends requests to endpoints.

    No proxy, no redirect, no cookie, and no connection that is used twice: two names with one address must not
    share what TLS has checked for one of them.

    Args:
        allowed: networks that may be called besides the public ones.
        timeout: seconds for one attempt.
        tls: trusted authorities; ``None``: the usual ones.
    """

    def __init__(
        self,
        allowed: Networks = (),
        *,
        timeout: float = TIMEOUT,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._allowed = allowed
        self._timeout = timeout
        self._http = http_client(
            None,
            headers={"User-Agent": f"posology/{__version__}", "Accept-Encoding": "identity"},
            timeout=httpx2.Timeout(timeout, connect=min(timeout, _CONNECT)),
            limits=httpx2.Limits(max_keepalive_connections=0),
            verify=tls,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def post(self, url: str, body: bytes, headers: dict[str, str]) -> Result:
        """Send a message once; a failure is a result.

        Args:
            url: of the endpoint.
            body: of the message, JSON.
            headers: that sign it.
        """
        try:
            with anyio.fail_after(self._timeout):
                return await self._post(url, body, headers)
        except TimeoutError:
            return Result(status=None, error=f"no response within {self._timeout:g} s")
        except (TargetRefused, httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            said = str(error) if isinstance(error, TargetRefused) else type(error).__name__
            return Result(status=None, error=said)

    async def _post(self, url: str, body: bytes, headers: dict[str, str]) -> Result:
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        port = parts.port or (443 if secure else 80)
        host = parts.hostname or ""
        addresses = await resolve(host, port, self._allowed, secure=secure)
        target = httpx2.URL(url)
        *others, last = addresses[:_ADDRESSES]
        for address in others:
            # the next one may be reached
            with suppress(httpx2.ConnectError, httpx2.ConnectTimeout):
                return await self._send(target.copy_with(host=address), target, body, headers)
        return await self._send(target.copy_with(host=last), target, body, headers)

    async def _send(
        self, address: httpx2.URL, named: httpx2.URL, body: bytes, headers: dict[str, str]
    ) -> Result:
        request = self._http.build_request(
            "POST",
            address,
            content=body,
            headers={
                **headers,
                "Host": named.netloc.decode("ascii"),
                "Content-Type": "application/json",
            },
            # the certificate is checked for the name, not for the address
            extensions={"sni_hostname": named.host},
        )
        reply = await self._http.send(request, stream=True)
        try:
            said = b"" if reply.is_success else await _beginning(reply)
        finally:
            await reply.aclose()
        if reply.is_success:
            return Result(status=reply.status_code)
        return Result(
            status=reply.status_code,
            error=clipped(f"status {reply.status_code}: {said.decode('utf-8', 'replace')}"),
            after=_after(reply),
        )


def clipped(text: str) -> str:
    """Return the beginning of a text, printable."""
    return " ".join(_UNPRINTABLE.sub(" ", text).split())[:KEPT].rstrip(": ")


async def _beginning(reply: httpx2.Response) -> bytes:
    found = b""
    async for piece in reply.aiter_raw(_READ):
        found += piece
        if len(found) >= _READ:
            break
    return found[:_READ]


def _after(reply: httpx2.Response) -> float | None:
    given = reply.headers.get("retry-after", "").strip()
    return float(given) if given.isascii() and given.isdigit() and len(given) < 9 else None
