"""Signals of a worker, handled without Celery's own lines on standard output.

SIGTERM: graceful shutdown; units that take longer than the timeout are requeued. SIGQUIT, and a second Ctrl-C: requeue at
once. Celery would end its pool's tasks by force, which threads do not allow (``kill_job``), and close connections under
calls that are paid for.
"""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType

from celery.worker import state

from workers.process import Runtime


def hasten_by_signal(runtime: Runtime) -> None:
    """Replace Celery's handlers of SIGTERM, SIGQUIT and SIGINT. Call from the main thread, once the worker is ready."""
    if threading.current_thread() is not threading.main_thread():
        return

    def finish(_number: int, _frame: FrameType | None) -> None:
        runtime.drain()
        # Celery's own flag for a warm shutdown, as its handler of SIGTERM sets it
        state.should_stop = 0

    def hasten(_number: int, _frame: FrameType | None) -> None:
        runtime.drain(0.0)
        state.should_stop = 0

    def interrupt(number: int, frame: FrameType | None) -> None:
        if runtime.draining:
            hasten(number, frame)
        else:
            os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, finish)
    signal.signal(signal.SIGQUIT, hasten)
    signal.signal(signal.SIGINT, interrupt)
