"""Connection to LanceDB, and the table of passages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from posology.errors import IndexFault, IndexMissing
from posology.index.places import Place, fault
from posology.index.schema import TABLE


def connect(place: Place) -> tuple[Any, Any]:
    """Connect to LanceDB at a place; return the connection, and its session, which holds caches of it alone.

    Raises:
        IndexFault: no index can be stored there, or there is no connection.
        ConfigurationError: credentials are missing.
    """
    import lancedb

    place.reach()
    try:
        session = lancedb.Session()
        connection = lancedb.connect(
            place.uri, storage_options=place.storage_options, session=session
        )
    except (OSError, RuntimeError, ValueError) as error:
        if place.folder is None:
            raise fault(error, place.uri) from None
        raise IndexFault(
            f"no index can be stored at {place.uri}: {error}", index=place.uri
        ) from error
    return connection, session


def require(place: Place) -> None:
    """Check at once that a folder holds an index, without opening it; object storage is not asked.

    Raises:
        IndexMissing: there is none.
    """
    folder = place.folder
    if folder is not None and not (folder / f"{TABLE}.lance").is_dir():
        raise IndexMissing(
            f"there is no index at {place}: build one with `posology ingest PATH --index {place}`",
            index=place.uri,
        )


def open_table(connection: Any, uri: str, name: str = TABLE) -> Any | None:
    """Open the newest version of a table, by default that of the passages; ``None``: there is no such table.

    Raises:
        IndexFault: it cannot be read.
    """
    try:
        return connection.open_table(name)
    except (OSError, RuntimeError, ValueError) as error:
        if "was not found" in str(error):
            # LanceDB leaves it in a cycle with its frames, which hold whatever our callers hold
            error.__traceback__ = None
            return None
        if "://" in uri:
            raise fault(error, uri) from None
        raise IndexFault(f"the index at {uri} cannot be read: {error}", index=uri) from error


def open_passages(place: Place) -> tuple[Any, Any, Any]:
    """Connect to an index; return connection and session, see :func:`connect`, and the newest version of its table.

    Raises:
        IndexMissing: there is none.
        IndexFault: it cannot be read.
    """
    folder = place.folder
    try:
        absent = folder is not None and not folder.is_dir()
    except OSError as error:
        raise IndexFault(
            f"the index at {place.uri} cannot be read: {error.strerror}", index=place.uri
        ) from error
    if not absent:
        connection, session = connect(place)
        table = open_table(connection, place.uri)
        if table is not None:
            return connection, session, table
    raise IndexMissing(
        f"there is no index at {place.uri}: build one with `posology ingest`", index=place.uri
    )


@contextmanager
def translated(uri: str) -> Iterator[None]:
    """Raise LanceDB's errors in the block as :class:`~posology.errors.IndexFault`.

    Args:
        uri: address of the index that the block reads or writes.
    """
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        if "://" in uri:
            # messages of object storage may hold keys and signatures
            raise fault(error, uri) from None
        reason = " ".join(str(error).split())
        raise IndexFault(
            f"the index at {uri} failed ({reason}): check the free disk space, and build a new index if files of it are "
            "missing",
            index=uri,
        ) from error
