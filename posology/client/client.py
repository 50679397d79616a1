"""The client."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import httpx2

from posology.client.batches import Batches
from posology.client.jobs import Jobs, Watches
from posology.client.literature import Literature
from posology.client.money import Money
from posology.client.tables import Tables
from posology.client.uploads import Uploads
from posology.client.wire import Wire
from posology.errors import KeyRefused
from posology.store import keys


class Client(Jobs, Watches, Batches, Literature, Uploads, Tables, Money):
    """Submits questions to a service, and watches what becomes of them.

    What may be repeated without doing more is repeated until it is answered: a submission without a key
    of yours gets one, so that no lost reply makes two jobs of one question.

    Args:
        base_url: where the API is.
        tenant: tenant of the jobs; ``None``: the key's, or ``default`` without a key.
        api_key: the tenant's key, where the service wants one.
        timeout: seconds of silence that one attempt bears.
        attempts: at one request, the first included.
        transport: what sends the requests; ``None``: the network.

    Every method raises :mod:`posology.errors` as the same call on the service's own machine would,
    :class:`ApiError` where the service has another reason, and :class:`ApiUnreachable` where it does
    not answer. A key that is none raises :class:`KeyRefused`, here or at the first request; here,
    a tenant's name that is none raises :class:`InvalidQuery`, and an address, or a variable for a
    proxy or for certificates, that cannot be used :class:`ConfigurationError`.
    """

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8000",
        *,
        tenant: str | None = None,
        api_key: str | None = None,
        timeout: float = 30.0,
        attempts: int = 5,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        wire = Wire(
            base_url,
            headers={"Accept": "application/json", **_whose(tenant, api_key)},
            timeout=timeout,
            attempts=attempts,
            transport=transport,
        )
        super().__init__(wire, timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._wire.aclose()


def _whose(tenant: str | None, api_key: str | None) -> dict[str, str]:
    if tenant is not None:
        # a name that is none could not be sent as a header
        keys.prefix(tenant)
    headers = {} if tenant is None else {"X-Posology-Tenant": tenant}
    if api_key is None:
        return headers
    if not (api_key.isascii() and api_key.isprintable()):
        # as a header it could not be sent, and the error of that would show it
        raise KeyRefused(
            "the API key has characters that no key has: write psl_ and what follows it"
        )
    return headers | {"Authorization": f"Bearer {api_key}"}
