"""Failed connections in words: the proxy that stands before a service, and certificates that are not trusted."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator

from posology.network.certificates import distrust
from posology.network.proxies import through

#: characters of a proxy's words that are repeated
_SAID = 100
#: what :func:`~posology.network.proxies.through` and :func:`~posology.network.certificates.distrust` say
_PRIVATE = re.compile(r" through the proxy \S+ \([^()]*\)| with the certificates of \w+=.+?(?= \()")


def reason(error: BaseException, url: str) -> str:
    """Return why no response came, in one phrase without the request.

    Args:
        error: of an HTTP library, or of an SDK around it.
        url: the service's address.
    """
    for link in causes(error):
        if isinstance(link, ssl.SSLCertVerificationError):
            return distrust(link)
        if type(link).__name__ == "ProxyError":
            return f"{said(str(link))}{through(url)}"
    return f"{type(error).__name__}{through(url)}"


def public(words: str) -> str:
    """Return an error's words for a tenant: without the proxies and files of the service."""
    return _PRIVATE.sub("", words)


def said(words: str) -> str:
    """Return the words of a proxy on one line, of bounded length."""
    return " ".join(words.split())[:_SAID]


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those that led to it."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        yield link
        seen.add(id(link))
        link = link.__cause__ or link.__context__
