"""Fields of a study record. A field that is missing, or of another type than documented, is blank."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from posology.corpus.pubmed.words import plain

#: characters that XML cannot hold, and halves of surrogate pairs
_UNHELD = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
#: Markdown's escapes, which the API writes: ``\>= 18 years``
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


def at(record: object, *names: str) -> Any:
    """Return what stands at a path of names; ``None``: nothing."""
    for name in names:
        record = record.get(name) if isinstance(record, dict) else None
    return record


def text(record: object, *names: str) -> str:
    """Return a text or a number on one line; empty: there is none."""
    return " ".join(lines(record, *names))


def lines(record: object, *names: str) -> list[str]:
    """Return the lines of a text that are not blank."""
    value = at(record, *names)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return []
    shown = _ESCAPED.sub(r"\1", _UNHELD.sub(" ", str(value)))
    return [line for line in map(plain, shown.split("\n")) if line]


def each(record: object, *names: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list."""
    value = at(record, *names)
    yield from (one for one in value if isinstance(one, dict)) if isinstance(value, list) else ()


def texts(record: object, *names: str) -> list[str]:
    """Return the texts of a list."""
    value = at(record, *names)
    return [one for one in map(text, value) if one] if isinstance(value, list) else []


def word(record: object, *names: str) -> str:
    """Return a value of an enumeration in words: ``double`` for ``DOUBLE``; a text in small letters stays as it is."""
    value = text(record, *names)
    return value.replace("_", " ").lower() if value.isupper() else value


def sentence(said: str) -> str:
    """Return a text that ends with a full stop; empty stays empty."""
    return said if not said or said[-1] in ".?!" else f"{said}."


def capital(said: str) -> str:
    """Return a text that begins with a capital letter."""
    return said[:1].upper() + said[1:]
