"""API keys: create, parse, compare. Only their hashes are stored."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from datetime import datetime

from posology.described import published

#: prefix of every key, for scanners of leaked secrets
START = "psl_"
#: bytes of id and secret; the id names the record and is not secret
_ID, _SECRET = 8, 24
_KEY = re.compile(rf"{START}([0-9a-f]{{{2 * _ID}}})_[0-9a-f]{{{2 * _SECRET}}}", re.ASCII)
#: hash that no key has
_NONE = "0" * 64


@dataclass(frozen=True, kw_only=True, slots=True)
class NewKey:
    """A new key: the only time that its text is known."""

    id: str
    #: ``psl_ID_SECRET``, the secret of 192 random bits
    text: str = field(repr=False)


@published("ApiKeyOutput")
@dataclass(frozen=True, kw_only=True, slots=True)
class TenantKey:
    """An API key, without its secret."""

    id: str
    created: datetime
    expires: datetime | None
    """End of validity; null: until the key is replaced."""


def make() -> NewKey:
    """Return a new random key."""
    own = secrets.token_hex(_ID)
    return NewKey(id=own, text=f"{START}{own}_{secrets.token_hex(_SECRET)}")


def id_of(text: str) -> str | None:
    """Return the id in a key's text; ``None``: it is malformed."""
    found = _KEY.fullmatch(text)
    return None if found is None else found[1]


def digest(text: str) -> str:
    """Return the stored hash of a key, SHA-256 in hex. A random secret needs no slow hash and no salt."""
    return hashlib.sha256(text.encode()).hexdigest()


def is_key_of(text: str, kept: str | None) -> bool:
    """Whether a key has a hash; constant time, also without a hash."""
    return hmac.compare_digest(digest(text), kept or _NONE)
