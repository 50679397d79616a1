"""Turns for work that takes the processor for long, of which a worker lets each tenant do one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

#: enters a block of long work, or raises :class:`Occupied`
Turn = Callable[[], AbstractContextManager[None]]
_turn: ContextVar[Turn | None] = ContextVar("_turn", default=None)


class Occupied(Exception):
    """No turn is free now: hand the work back and do it later, so that it keeps no place of others."""


def long_work() -> AbstractContextManager[None]:
    """Return a block for work of seconds on the processor; outside of a worker it does nothing.

    Raises:
        Occupied: at its entry; the tenant does such work already.
    """
    turn = _turn.get()
    return nullcontext() if turn is None else turn()


@contextmanager
def taking(turn: Turn) -> Iterator[None]:
    """Let long work in the block, and in tasks that begin there, take turns.

    Args:
        turn: enters a block of long work.
    """
    token = _turn.set(turn)
    try:
        yield
    finally:
        _turn.reset(token)
