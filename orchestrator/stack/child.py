"""A child process: start, watch, stop, and kill it with its process group."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from orchestrator.logs.rotated import KEPT, LIMIT
from orchestrator.stack import launch
from orchestrator.stack.output import Hear, Output

#: seconds between polls, if the system cannot report the end of a process
_LOOK = 0.05
#: seconds to end after the second signal
_INSIST = 3.0
#: seconds for a killed process to disappear; only one stuck in the kernel takes longer
_KILLED = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """A program to run."""

    #: name in messages and of the log
    name: str
    argv: tuple[str, ...]
    #: complete environment: nothing is inherited
    environment: Mapping[str, str] = field(repr=False)
    #: file for its output
    log: Path
    #: maximum bytes of a log; then it is rotated
    log_limit: int = LIMIT
    #: number of rotated logs that are kept
    logs_kept: int = KEPT
    #: working directory; ``None``: that of the supervisor
    folder: Path | None = None
    #: seconds to end after SIGTERM
    grace: float = 10.0
    #: signal after the grace, some seconds before SIGKILL; ``None``: SIGKILL at once
    insist: signal.Signals | None = None
    #: signal when the supervisor dies (Linux)
    orphaned: signal.Signals = signal.SIGKILL
    #: inherited file descriptors
    inherits: tuple[int, ...] = ()
    #: umask; -1: that of the supervisor
    umask: int = -1


class Child:
    """A process in its own session, so that Ctrl-C reaches only the supervisor.

    On Linux it ends when the *thread* that called :meth:`start` ends: call it from the thread of the event loop.

    Args:
        command: to run.
        hear: takes every line of output; ``None``: only the log does.
    """

    def __init__(self, command: Command, hear: Hear | None = None) -> None:
        self.command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._output = Output(
            command.name,
            command.log,
            limit=command.log_limit,
            kept=command.logs_kept,
            hear=hear,
        )

    @property
    def pid(self) -> int | None:
        """Return the process id; ``None``: not running."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the process. It must not be running."""
        command = self.command
        parent, orphaned = str(os.getpid()), str(int(command.orphaned))
        launcher = [sys.executable, "-I", "-S", launch.__file__, parent, orphaned]
        with os.fdopen(self._output.begin(), "wb", buffering=0) as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own commands, no shell
                [*launcher, *command.argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=command.folder,
                env=dict(command.environment),
                start_new_session=True,
                pass_fds=command.inherits,
                umask=command.umask,
            )

    async def ended(self) -> None:
        """Wait for the end of the process; :meth:`reap` collects it."""
        if self._process is None:
            return
        try:
            descriptor = _pidfd(self._process.pid)
        except OSError:
            await self._polled(self._process)
            return
        try:
            await anyio.wait_readable(descriptor)
        finally:
            os.close(descriptor)

    async def _polled(self, process: subprocess.Popen[bytes]) -> None:
        while process.poll() is None:  # noqa: ASYNC110 - no event to wait for
            await anyio.sleep(_LOOK)

    def reap(self) -> int:
        """Kill the process and its group, if they still run.

        Returns:
            The exit status; negative: the signal that ended the process.
        """
        process, self._process = self._process, None
        if process is None:
            return 0
        # before the wait: until then the process id cannot be reused
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        status = process.wait(_KILLED)
        self._output.end()
        return status

    async def stop(self, hurry: anyio.Event) -> None:
        """Stop the process by SIGTERM; by stronger signals after its grace or when ``hurry`` is set."""
        if self._process is None:
            return
        try:
            self._process.send_signal(signal.SIGTERM)
            with anyio.move_on_after(self.command.grace):
                async with anyio.create_task_group() as waiting:
                    waiting.start_soon(_then_cancel, hurry, waiting.cancel_scope)
                    await self.ended()
                    waiting.cancel_scope.cancel()
            if self.command.insist:
                self._process.send_signal(self.command.insist)
                with anyio.move_on_after(_INSIST):
                    await self.ended()
        finally:
            self.reap()

    def last_lines(self) -> tuple[str, ...]:
        """Return the last five lines of output since the last start."""
        return self._output.last(5)


async def _then_cancel(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


def _pidfd(pid: int) -> int:
    if sys.platform != "linux":
        raise OSError("process descriptors need Linux")
    return os.pidfd_open(pid)
