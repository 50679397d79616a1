"""Where an index lies, and its table there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from posology.errors import IndexFault
from posology.index.places import Place, fault
from posology.index.schema import TABLE


def connect(place: Place) -> Any:
    """LanceDB at this place.

    Raises:
        IndexFault: no index can lie there, or it cannot be reached.
        ConfigurationError: there are no credentials for it.
    """
    import lancedb

    place.reach()
    try:
        return lancedb.connect(place.uri, storage_options=place.storage_options)
    except (OSError, RuntimeError, ValueError) as error:
        if place.folder is None:
            raise fault(error, place.uri) from None
        raise IndexFault(f"{place.uri} cannot hold an index: {error}", index=place.uri) from error


def open_table(connection: Any, uri: str) -> Any | None:
    """The newest version of the passages; ``None``: there are none.

    Raises:
        IndexFault: they cannot be read.
    """
    try:
        return connection.open_table(TABLE)
    except (OSError, RuntimeError, ValueError) as error:
        if "was not found" in str(error):
            return None
        if "://" in uri:
            raise fault(error, uri) from None
        raise IndexFault(f"the index at {uri} cannot be read: {error}", index=uri) from error


@contextmanager
def translated(uri: str) -> Iterator[None]:
    """Raise what LanceDB raises in the block as an :class:`~posology.errors.IndexFault`.

    Args:
        uri: of the index that the block reads or writes.
    """
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        if "://" in uri:
            # what storage says may hold keys and signatures
            raise fault(error, uri) from None
        reason = " ".join(str(error).split())
        raise IndexFault(
            f"the index at {uri} failed: see that there is room on its disk, and build it anew if "
            f"files of it are gone ({reason})",
            index=uri,
        ) from error
