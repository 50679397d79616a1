"""API keys: made, taken apart, compared. Only their hashes are kept."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field

#: what every key begins with, so that scanners for leaked secrets can tell ours
START = "psl_"
#: bytes; the id names the record and is no secret
_ID, _SECRET = 8, 24
_KEY = re.compile(rf"{START}([0-9a-f]{{{2 * _ID}}})_[0-9a-f]{{{2 * _SECRET}}}", re.ASCII)
#: the hash of no key
_NONE = "0" * 64


@dataclass(frozen=True, kw_only=True, slots=True)
class NewKey:
    """A key that was just made: the one time that its text is known."""

    id: str
    #: ``psl_ID_SECRET``, the secret of 192 random bits
    text: str = field(repr=False)


def make() -> NewKey:
    """A key that nobody can guess."""
    own = secrets.token_hex(_ID)
    return NewKey(id=own, text=f"{START}{own}_{secrets.token_hex(_SECRET)}")


def id_of(text: str) -> str | None:
    """The id of what claims to be a key; ``None``: it is of another form."""
    found = _KEY.fullmatch(text)
    return None if found is None else found[1]


def digest(text: str) -> str:
    """What is kept of a key, SHA-256 in hex. A random secret needs no slow hash and no salt."""
    return hashlib.sha256(text.encode()).hexdigest()


def is_key_of(text: str, kept: str | None) -> bool:
    """Whether a key has that hash; it takes as long where there is none to compare with."""
    return hmac.compare_digest(digest(text), kept or _NONE)
