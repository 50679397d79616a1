"""Translation of HTTP and SDK errors to :mod:`posology.errors`, common to all vendors."""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from posology.errors import (
    AuthenticationFailed,
    ContextTooLong,
    MalformedReply,
    ModelNotFound,
    NoCapacity,
    PermissionRefused,
    ProviderError,
    ProviderTimeout,
    ProviderUnreachable,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
    UnusableReply,
)
from posology.llm.providers.headers import retry_after
from posology.llm.providers.replies.faults import Fault, billed_nothing, kind_of
from posology.network.certificates import distrust
from posology.network.failures import causes, said
from posology.network.proxies import through
from posology.types import Usage

_UNREADABLE = "the server cannot read what its model wrote; use another model or quantization"
#: maximum characters of a provider's message in ours
MAX_QUOTE = 300
#: minimum length of a key to remove; a shorter one is a placeholder for a server without keys
MIN_SECRET = 8
#: statuses that a proxy answers itself with
_OF_PROXIES = frozenset({407, 502, 503, 504})
_ADVICE: dict[type[ProviderError], str] = {
    AuthenticationFailed: "check the API key",
    PermissionRefused: "check the permissions of the API key",
    QuotaExhausted: "add credit to the account",
    ModelNotFound: "check the model's name and the base URL",
    ContextTooLong: "use fewer or shorter passages",
    RateLimited: "wait, or lower POSOLOGY_CONCURRENCY",
    NoCapacity: "try again later, or use the tier flex-then-standard",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Vendor:
    """A provider as its SDK knows it: names, addresses and classes of errors."""

    provider: str
    #: environment variable of the API key, for messages
    key_variable: str
    #: environment variable of the base URL, for messages
    url_variable: str
    #: the provider's own address
    base_url: str
    #: header that carries the provider's id of a request
    id_header: str
    #: base of the SDK's errors
    error: type[Exception]
    #: base of those that come from the API
    api_error: type[Exception]
    #: base of those for a response with an error status
    status_error: type[Exception]
    #: errors that no call of ours should lead to; by name, since releases of an SDK differ
    by_name: Mapping[str, type[ProviderError]]
    #: how to provide credentials other than a key, as advice; empty: only a key will do
    other_credentials: str = ""

    def translate(
        self, error: Exception, model: str, *, secret: str, address: str | None = None
    ) -> ProviderError:
        """Return our error for one of the SDK's, or of its HTTP library's.

        Args:
            error: as it was raised.
            model: ``provider:name``.
            secret: the key, which is removed from the provider's words.
            address: base URL of the request, to name the proxy before it; ``None``: there is none.
        """
        if isinstance(error, self.status_error):
            failed: Any = error
            fault = Fault.of(failed.body)
            return self.refusal(
                fault,
                status=failed.status_code,
                model=model,
                request_id=failed.request_id,
                retry_after=retry_after(failed.response.headers, now=time.time()),
                usage=Usage() if billed_nothing(failed.status_code, fault) else None,
                secret=secret,
                address=address,
            )
        if isinstance(error, self.error) and not isinstance(error, self.api_error):
            kind = _named(error, self.by_name) or ProviderError
            return kind(
                f"{self.provider} failed for {model} ({type(error).__name__})",
                provider=self.provider,
                model=model,
            )
        return from_transport(error, provider=self.provider, model=model, address=address)

    def refusal(
        self,
        fault: Fault,
        *,
        status: int,
        model: str,
        secret: str,
        within: bool = False,
        address: str | None = None,
        **known: Any,
    ) -> ProviderError:
        """Return the error of a request that failed by the provider's own words.

        Args:
            fault: what it says.
            status: of the response, or of the error in it.
            model: ``provider:name``.
            secret: the key, which is removed from the provider's words, since some servers repeat it.
            within: whether the response had status 200, and the error stood in it.
            address: as for :meth:`translate`.
            known: more fields of the error.
        """
        kind = kind_of(status, fault)
        told = [str(status)] if within and status != 200 else []
        parts = (", ".join((*told, *fault.codes)), quote(scrub(fault.words, secret)))
        words = ": ".join(filter(None, parts))
        answer = "200 with an error" if within else str(status)
        route = through(address) if address and status in _OF_PROXIES else ""
        message = f"{self.provider} answered {answer} for {model}{route}" + (
            f" ({words})" if words else ""
        )
        if fault.misses_path(status):
            form = f", as in {self.base_url}" if self.base_url else ""
            message += f": nothing is served there, check the base URL ({self.url_variable}{form})"
        elif kind is UnusableReply and status != 200:
            message += f": {_UNREADABLE}"
        elif kind in _ADVICE:
            message += f": {_ADVICE[kind]}"
        return kind(message, provider=self.provider, model=model, status=status, **known)


def from_transport(
    error: BaseException, *, provider: str, model: str, address: str | None = None
) -> ProviderError:
    """Return the error for a failed connection, vendors' wrappers included.

    Types are compared by name: both SDKs accept either of two HTTP libraries with the same names. ``address``: as for
    :meth:`Vendor.translate`.
    """
    names = {kind.__name__ for link in causes(error) for kind in type(link).__mro__}
    if "UnicodeEncodeError" in names:
        return RequestRejected(
            f"the messages for {model} are not valid Unicode",
            provider=provider,
            model=model,
            usage=Usage(),
        )
    if names & {"DecodingError", "APIResponseValidationError", "JSONDecodeError"}:
        return MalformedReply(
            f"{provider}'s reply for {model} cannot be decoded", provider=provider, model=model
        )
    if names & {"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError"}:
        # nothing was sent, so nothing was billed
        return ProviderUnreachable(
            f"no connection to {provider} for {model}{_hindrance(error, address)}",
            provider=provider,
            model=model,
            usage=Usage(),
        )
    if names & {"TimeoutException", "APITimeoutError", "TimeoutError"}:
        return ProviderTimeout(
            f"{provider} did not answer for {model} in time", provider=provider, model=model
        )
    return ProviderUnreachable(
        f"the connection to {provider} for {model} was cut ({type(error).__name__})",
        provider=provider,
        model=model,
    )


def _hindrance(error: BaseException, address: str | None) -> str:
    """Return what to check after a failed connection."""
    for link in causes(error):
        if isinstance(link, ssl.SSLCertVerificationError):
            return f": {distrust(link)}"
    if not (route := through(address) if address else ""):
        return ": check the network and the base URL"
    refused = [said(str(link)) for link in causes(error) if type(link).__name__ == "ProxyError"]
    return f"{route}{f' ({refused[0]})' if refused else ''}: check the proxy, or name the host in NO_PROXY"


def scrub(words: str, secret: str) -> str:
    """Return words without the key."""
    return words.replace(secret, "***") if len(secret) >= MIN_SECRET else words


def _named(
    error: BaseException, table: Mapping[str, type[ProviderError]]
) -> type[ProviderError] | None:
    """Return a table's entry for an error's class, or for the nearest of its bases."""
    return next((table[k.__name__] for k in type(error).__mro__ if k.__name__ in table), None)


def quote(words: str) -> str:
    """Return a provider's words on one line, of bounded length."""
    line = " ".join(words.split())
    return line if len(line) <= MAX_QUOTE else line[: MAX_QUOTE - 1] + "…"
