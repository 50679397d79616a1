"""Names of uploaded files: one component of a path that is a file of that name on every system, or refused."""

from __future__ import annotations

import unicodedata

from posology.errors import BadFile, InvalidQuery

#: maximum bytes of a name in UTF-8; file systems allow 255
MAX_NAME = 200
#: characters that part paths, or that some system does not allow
_FORBIDDEN = frozenset('/\\:*?"<>|')
#: names of devices on Windows, with any suffix
_DEVICES = frozenset(
    (
        *("con", "prn", "aux", "nul", "conin$", "conout$"),
        *(f"{port}{n}" for port in ("com", "lpt") for n in "0123456789¹²³"),
    )
)


def check_name(given: str) -> str:
    """Return the name under which an uploaded file is kept: the given one, in Unicode's normal form C.

    A name is never repaired: two names of a caller could become one, and its records replace each other.

    Raises:
        InvalidQuery: the name is a path, hidden, a device's or not printable.
        BadFile: no format has its suffix.
    """
    name = unicodedata.normalize("NFC", given)
    if reason := _wrong(name):
        raise InvalidQuery(f"name: {reason} (got {given[:100]!r})", field="name")
    if reason := _unknown(name):
        raise BadFile(reason, path=name)
    return name


def _wrong(name: str) -> str | None:
    if not name:
        return "give the file a name, e.g. abstracts.jsonl"
    # a lone surrogate is not printable
    if not name.isprintable():
        return "use printable characters only"
    if _FORBIDDEN & set(name):
        return 'use the name alone, without folders and without any of : * ? " < > |'
    if name[0] in ".-~ " or name[-1] in ". ":
        return "begin with a letter or digit, and do not end with a dot or space"
    if name.partition(".")[0].rstrip().lower() in _DEVICES:
        return "this is the name of a device on some systems: use another"
    if len(name.encode()) > MAX_NAME:
        return f"use at most {MAX_NAME} bytes"
    return None


def _unknown(name: str) -> str | None:
    from posology.corpus.files import INSTEAD, known_suffixes

    lower = name.lower()
    if lower.endswith(known_suffixes()):
        return None
    instead = next((what for suffix, what in INSTEAD.items() if lower.endswith(suffix)), None)
    if instead is not None:
        return f"not a format that ingest reads: {instead}"
    return f"no format has this suffix; formats are {', '.join(known_suffixes())}"
