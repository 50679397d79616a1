"""Cancellation of work in a thread, which can only stop itself."""

from __future__ import annotations

from anyio import from_thread


def checkpoint() -> None:
    """Raise the cancellation of the task that waits for this thread, if it was cancelled; else do nothing.

    Call it in long loops that may run in a thread of ``anyio.to_thread.run_sync(…, abandon_on_cancel=True)``. In any
    other thread it does nothing.
    """
    try:
        from_thread.check_cancelled()
    except RuntimeError:
        # no task waits for this thread
        return
