"""Sessions of the console. The cookie has a random token; Redis has its SHA-256, until the session ends."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import asdict, dataclass
from json import dumps, loads

from redis.asyncio import Redis

from posology.store import keys
from posology.store.connection import translated

#: seconds after which a session ends
LENGTH = 12 * 3_600
#: bytes of a token
_TOKEN = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """Scope of a session; it ends when its key is no longer accepted."""

    #: the tenant; ``None``: an operator, who has no jobs
    tenant: str | None
    #: id of the tenant's key, or digest of the operator's
    key: str


def new_token() -> str:
    """Return a random token."""
    return secrets.token_urlsafe(_TOKEN)


def form_token(token: str) -> str:
    """Return the token of forms: it shows that a form comes from a page that only the cookie's owner has read."""
    return hmac.new(token.encode(), b"posology console form", hashlib.sha256).hexdigest()


class Sessions:
    """All sessions on one Redis.

    Args:
        redis: the connection.
        url: for messages.
    """

    def __init__(self, redis: Redis, url: str) -> None:
        self._redis = redis
        self._url = url

    async def begin(self, session: Session) -> str:
        """Store a session under a new token, and return the token.

        Raises:
            StoreUnavailable: Redis is unreachable.
        """
        token = new_token()
        with translated(self._url):
            await self._redis.set(_name(token), dumps(asdict(session)), ex=LENGTH)
        return token

    async def find(self, token: str) -> Session | None:
        """Return a session; ``None``: it has ended, or never was.

        Raises:
            StoreUnavailable: Redis is unreachable.
        """
        with translated(self._url):
            found = await self._redis.get(_name(token))
        return None if found is None else Session(**loads(found))

    async def end(self, token: str) -> None:
        """End a session.

        Raises:
            StoreUnavailable: Redis is unreachable; the session ends by itself.
        """
        with translated(self._url):
            await self._redis.delete(_name(token))


def _name(token: str) -> str:
    return keys.console_session(hashlib.sha256(token.encode()).hexdigest())
