"""Posology: question answering over the medical literature.

Every quote is verified, every model call accounted for. A program uses :class:`Posology`, or :class:`AsyncPosology` within an
event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.library import AsyncPosology, Posology
    from posology.version import __version__

__all__ = ["AsyncPosology", "Posology", "__version__"]


def __getattr__(name: str) -> object:
    # each module of this package imports this one, so it imports nothing before it is asked
    if name == "__version__":
        from posology.version import __version__

        return __version__
    # the package is the lowest layer and its name is the public one: what answers is above
    if name in ("AsyncPosology", "Posology"):
        from orchestrator import library

        return getattr(library, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
