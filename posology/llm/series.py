"""Which attempts are at one call, and the id of the one under way.

Retry stands outside accounting and knows which attempts belong together; accounting writes the
numbers. Accounting also chooses each attempt's id, which the adapter sends along. A context variable
carries the one to the other, so that none needs to know the others, and concurrent calls, each in a
task or at least an ``await`` of its own, never mix.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from posology.seams import Bound
from posology.types import Call


@dataclass(kw_only=True, slots=True)
class Series:
    """The attempts at one call so far: the one value here that changes, within one task."""

    #: ``None`` until the first attempt starts
    call: int | None = None
    attempts: int = 0
    #: of the attempt under way, chosen before it is sent; ``None``: nobody chose one
    attempt_id: str | None = None
    #: tokens of the call's input, at most; ``None`` until somebody has counted
    bound: int | None = None
    #: what the tenant's minute has granted to the attempt that is to be sent next, by when: kept while it
    #: waits for money
    granted: Mapping[str, float] = field(default_factory=dict)
    #: whether that is kept for whoever takes the call up, should it be handed back
    kept: bool = False


_current: ContextVar[Series | None] = ContextVar("series", default=None)


@contextmanager
def one_call() -> Iterator[None]:
    """Attempts that start within it are at the same call."""
    token = _current.set(Series())
    try:
        yield
    finally:
        _current.reset(token)


def current() -> Series:
    """The running series; a new one where nothing retries."""
    return _current.get() or Series()


def attempt_id() -> str | None:
    """The id of the attempt under way; ``None`` outside :func:`one_call`, or while nobody chose one."""
    series = _current.get()
    return None if series is None else series.attempt_id


class Counted:
    """A :class:`~posology.seams.Bound` that counts a call once, however often it is tried."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound

    def __call__(self, call: Call) -> int:
        """Input tokens, at most."""
        series = current()
        if series.bound is None:
            series.bound = self._bound(call)
        return series.bound
