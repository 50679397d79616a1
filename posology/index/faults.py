"""LanceDB's errors as ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from posology.errors import IndexFault
from posology.index.places import fault


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
