"""Sessions of the console. The cookie has a random token; Redis has its SHA-256, until the session ends."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address, ip_address, ip_network
from json import dumps, loads

from redis.asyncio import Redis

from posology.store import keys
from posology.store.connection import translated

#: seconds after which a session ends
LENGTH = 12 * 3_600
#: sessions of a tenant, or of operators: a new one ends the oldest, so that they fill no Redis
MOST = 50
#: sign-ins from an address that fail in a window, and the seconds of the window: keys are not to be guessed
FAILURES, WINDOW = 20, 60
#: bytes of a token
_TOKEN = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """Scope of a session; it ends when its key is no longer accepted."""

    #: the tenant; ``None``: an operator, who has no jobs
    tenant: str | None
    #: id of the tenant's key, or digest of the operator's, or of the sign-in provider's options
    key: str

    @property
    def owner(self) -> str:
        """Name of the owner: no tenant's begins with a sign."""
        return "@operator" if self.tenant is None else self.tenant


class TooManySignIns(Exception):
    """Too many sign-ins from an address failed in the last minute."""


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
        """Store a session under a new token, and return the token; of too many of its owner, the oldest end.

        Raises:
            StoreUnavailable: Redis is unreachable.
        """
        token = new_token()
        name, known = _name(token), keys.console_sessions(session.owner)
        with translated(self._url):
            # listed first: one that is not listed would not be ended
            async with self._redis.pipeline(transaction=True) as pipe:
                pipe.zremrangebyscore(known, 0, time.time() - LENGTH)
                pipe.zadd(known, {name: time.time()})
                pipe.zrange(known, 0, -MOST - 1)
                pipe.zremrangebyrank(known, 0, -MOST - 1)
                pipe.expire(known, LENGTH)
                _, _, ended, *_ = await pipe.execute()
            await self._redis.set(name, dumps(asdict(session)), ex=LENGTH)
            for old in ended:
                # one by one: a cluster keeps them in several places
                await self._redis.delete(old)
        return token

    @asynccontextmanager
    async def trying(self, address: str) -> AsyncIterator[None]:
        """Count a sign-in from an address during the block, and go on counting it if the block raises.

        Raises:
            TooManySignIns: as many have failed, or are under way.
            StoreUnavailable: Redis is unreachable.
        """
        name = keys.console_failures(place(address))
        with translated(self._url):
            async with self._redis.pipeline(transaction=True) as pipe:
                pipe.set(name, 0, ex=WINDOW, nx=True)
                pipe.incr(name)
                _, count = await pipe.execute()
        if count > FAILURES:
            raise TooManySignIns
        yield
        with translated(self._url):
            async with self._redis.pipeline(transaction=True) as pipe:
                # its window may have ended: a count that DECR began would never end
                pipe.set(name, 1, ex=WINDOW, nx=True)
                pipe.decr(name)
                await pipe.execute()

    async def first(self, state: str, *, seconds: int) -> bool:
        """Return whether a state of the sign-in provider is used for the first time in so many seconds.

        Raises:
            StoreUnavailable: Redis is unreachable.
        """
        with translated(self._url):
            return bool(
                await self._redis.set(keys.console_return(_digest(state)), 1, ex=seconds, nx=True)
            )

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
        session = await self.find(token)
        with translated(self._url):
            await self._redis.delete(_name(token))
            if session is not None:
                await self._redis.zrem(keys.console_sessions(session.owner), _name(token))


def place(address: str) -> str:
    """Return what stands for an address: of IPv6 its network of 64 bits, which one client has whole."""
    try:
        known = ip_address(address)
    except ValueError:
        return address
    if isinstance(known, IPv4Address):
        return address
    return str(known.ipv4_mapped or ip_network((known, 64), strict=False).network_address)


def _name(token: str) -> str:
    return keys.console_session(_digest(token))


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
