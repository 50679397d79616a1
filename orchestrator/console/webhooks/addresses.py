"""Addresses of endpoints without what may be a secret in them."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

#: characters of a path's part up to which it is a word, and those of a longer one that are shown: it may be a token
_WORD, _SHOWN = 20, 4
_PARTS = re.compile(r"[^/]+")


def without_secrets(url: str) -> str:
    """Return an address without its user, its fragment, the values of its query and most of long parts of its path."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "…"
    host = parts.netloc.rpartition("@")[2]
    path = _PARTS.sub(lambda found: _word(found[0]), parts.path)
    query = "&".join(map(_value, parts.query.split("&"))) if parts.query else ""
    return f"{parts.scheme}://{host}{path}{'?' if query else ''}{query}"


def _word(text: str) -> str:
    return text if len(text) <= _WORD else f"{text[:_SHOWN]}…"


def _value(field: str) -> str:
    name, named, _ = field.partition("=")
    return f"{_word(name)}=…" if named else "…"
