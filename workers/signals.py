"""What signals mean to a worker.

SIGTERM: finish what is held, within the grace; what takes longer is handed back. SIGQUIT, and a second Ctrl-C:
hand it back at once. Celery's own answer to the latter is to end its pool's tasks by force, which threads do not
allow (``kill_job``): it would close connections under calls that are paid for.
"""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType

from celery.worker import state

from workers.process import Runtime


def hasten_by_signal(runtime: Runtime) -> None:
    """Take SIGQUIT and SIGINT over from Celery. For the main thread, once the worker is ready."""
    if threading.current_thread() is not threading.main_thread():
        return

    def hasten(_number: int, _frame: FrameType | None) -> None:
        runtime.drain(0.0)
        # Celery's own flag for a warm shutdown, as its handler of SIGTERM sets it
        state.should_stop = 0

    def interrupt(number: int, frame: FrameType | None) -> None:
        if runtime.draining:
            hasten(number, frame)
        else:
            os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGQUIT, hasten)
    signal.signal(signal.SIGINT, interrupt)
