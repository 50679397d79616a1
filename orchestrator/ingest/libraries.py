"""``zotero:[group/ID/][COLLECTION]``: which library and collection it means, and notes that are written there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2

from posology.corpus.zotero.library import Library
from posology.corpus.zotero.wire import SERVICE
from posology.errors import ConfigurationError, InputError
from posology.network.clients import blocking_client, checked_url
from posology.network.hosts import is_loopback

if TYPE_CHECKING:
    from orchestrator.settings import Settings

PREFIX = "zotero:"
#: seconds within which a program on this machine answers
_LOCAL_TIMEOUT = 5.0


def is_library(path: Path) -> bool:
    """Return whether a path of an ingest is a library."""
    return str(path).startswith(PREFIX)


def parse(source: str) -> tuple[str | None, str]:
    """Return the group's id and the collection of ``zotero:[group/ID/][COLLECTION]``, of which each may be none.

    Raises:
        InputError: it is of another form.
    """
    if not is_library(Path(source)):
        raise InputError(f"a library is {PREFIX}[group/ID/][COLLECTION] (got {source!r})")
    rest = source.removeprefix(PREFIX)
    parts = rest.split("/", 2)
    if parts[0] != "group":
        return None, rest
    if len(parts) < 2 or not (parts[1].isascii() and parts[1].isdigit()):
        raise InputError("a library of a group is zotero:group/ID, with the number of its address")
    return parts[1], "/".join(parts[2:])


def collection_key(name: str, known: Mapping[str, tuple[str, str]]) -> str:
    """Return the key of a collection, by its key or name; empty: the whole library.

    Args:
        name: key or name.
        known: name and parent of each collection, by key.

    Raises:
        InputError: there is no such collection, or several have the name.
    """
    if not name or name in known:
        return name
    keys = sorted(key for key, (called, _) in known.items() if called == name)
    if not keys:
        names = ", ".join(sorted({called for called, _ in known.values()})[:20]) or "none"
        raise InputError(f"{SERVICE} has no collection {name!r}; there are {names}")
    if len(keys) > 1:
        raise InputError(
            f"{len(keys)} collections are named {name!r}: give the key of one ({', '.join(keys)})"
        )
    return keys[0]


def add_note(source: str, html: str, settings: Settings) -> str | None:
    """Add a note to a library by its web API, since the local one cannot be written to. Blocking.

    Args:
        source: ``zotero:[group/ID/][COLLECTION]``, where the note goes.
        html: the note.
        settings: address and key of Zotero.

    Returns:
        The note's key; ``None``: the same note was added in the last 12 hours, and is not added again.

    Raises:
        InputError: the source is no library, or there is no such collection, or several have its name.
        ConfigurationError: there is no key.
        FetchFailed: Zotero refused, or gave no usable reply.
    """
    group, name = parse(source)
    if settings.zotero_key is None:
        raise ConfigurationError(
            "to write a note, set POSOLOGY_ZOTERO_KEY to a key of zotero.org/settings/keys that may write to the library"
        )
    with _open_web(settings, group) as library:
        return library.add_note(html, collection=collection_key(name, library.collections()))


def open_library(settings: Settings, group: str | None) -> Library:
    """Return a library by Zotero on this machine, or by its web API.

    Raises:
        ConfigurationError: Zotero does not run here, and no key is set; or an address is not allowed.
        FetchFailed: no reply came, or the key is refused.
    """
    local = settings.zotero_local_url
    if local != "off" and _answers(local):
        return Library(local, local=True, group=group)
    return _open_web(settings, group)


def _open_web(settings: Settings, group: str | None) -> Library:
    key = settings.zotero_key
    url = checked_url(settings.zotero_url, variable="POSOLOGY_ZOTERO_URL")
    return Library(url, local=False, group=group, key=key.get_secret_value() if key else None)


def _answers(url: str) -> bool:
    """Return whether Zotero runs here; its answers may name any file of this machine, so no other host is asked."""
    if not is_loopback(checked_url(url, variable="POSOLOGY_ZOTERO_LOCAL_URL")):
        raise ConfigurationError(
            "POSOLOGY_ZOTERO_LOCAL_URL must be an address of this machine, or off"
        )
    with blocking_client(url, timeout=_LOCAL_TIMEOUT) as client:
        try:
            return client.get(url.rstrip("/") + "/").status_code == httpx2.codes.OK
        except httpx2.HTTPError:
            return False
