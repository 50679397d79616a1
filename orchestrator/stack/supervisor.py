"""Supervisor: keeps processes running until the end of a block."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import anyio

from orchestrator.logs.files import Line
from orchestrator.stack.child import Child, Command
from orchestrator.stack.output import Hear
from posology.errors import ChildFailed

Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class RestartPolicy:
    """Restart policy: back-off and the maximum number of restarts."""

    #: seconds to wait after the first end; doubled after each further one
    first: float = 0.1
    #: maximum seconds to wait
    longest: float = 5.0
    #: number of ends …
    ends: int = 5
    #: … within this number of seconds that is a failure
    within: float = 30.0


def silent(message: str) -> None:
    """Discard a line."""


@asynccontextmanager
async def kept(
    commands: Sequence[Command],
    *,
    hurry: anyio.Event,
    policy: RestartPolicy | None = None,
    tell: Tell = silent,
    hear: Hear | None = None,
) -> AsyncIterator[tuple[Child, ...]]:
    """Start processes, restart those that end, and stop all at the end of the block.

    Nest blocks to order the stops. Enter and leave the block in one task.

    Args:
        commands: to run.
        hurry: when set, processes are stopped without grace.
        policy: when to restart.
        tell: called with a line for each process that ended by itself.
        hear: called with every line of output.

    Raises:
        ChildFailed: a process keeps ending. The block is cancelled.
    """
    policy = policy or RestartPolicy()
    children = tuple(Child(command, hear) for command in commands)
    try:
        with single_errors():
            async with anyio.create_task_group() as keeping:
                for child in children:
                    child.start()
                    keeping.start_soon(_keep, child, policy, tell)
                yield children
                keeping.cancel_scope.cancel()
    finally:
        await _stop(children, hurry)


async def _keep(child: Child, policy: RestartPolicy, tell: Tell) -> None:
    name, ends = child.command.name, deque[float]()
    while True:
        await child.ended()
        how = _how(child.reap())
        now = anyio.current_time()
        ends.append(now)
        while now - ends[0] > policy.within:
            ends.popleft()
        if len(ends) >= policy.ends:
            raise failure(
                child, f"{name} ended {len(ends)} times within {policy.within:g} s, last {how}"
            )
        wait = min(policy.longest, policy.first * 2 ** (len(ends) - 1))
        tell(f"{name} ended {how}; restarting in {wait:g} s")
        await anyio.sleep(wait)
        child.start()


async def _stop(children: Sequence[Child], hurry: anyio.Event) -> None:
    try:
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as stopping:
                for child in children:
                    stopping.start_soon(child.stop, hurry)
    finally:
        # a second Ctrl-C without a signal handler breaks through the shield
        for child in children:
            child.reap()


def failure(child: Child, what: str) -> ChildFailed:
    """Return an error with the last output of the process."""
    lines = tuple(_said(line) for line in child.last_lines())
    output = f": {' | '.join(lines)}" if lines else ""
    return ChildFailed(
        f"{what}{output} (log: {child.command.log})", child=child.command.name, lines=lines
    )


def _said(text: str) -> str:
    """Return a line of output for people: of one in JSON, event and fields."""
    line = Line.of("", text)
    return line.said if line.fields else text


@contextmanager
def single_errors() -> Iterator[None]:
    """Unwrap the only error of a task group."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from error.__cause__


def _how(status: int) -> str:
    if status >= 0:
        return f"with exit status {status}"
    try:
        return f"by {signal.Signals(-status).name}"
    except ValueError:
        return f"by signal {-status}"
