"""What can go wrong with a stack before it serves."""

from __future__ import annotations

from posology.errors import ConfigurationError


class StackRuns(ConfigurationError):
    """Another stack has the data folder."""

    def __init__(self, message: str, *, pid: int | None, api: str | None) -> None:
        super().__init__(message, pid=pid, api=api)

    #: of the stack that runs, ``None`` when it has not said so yet
    pid: int | None
    #: where its API is, ``None`` without one
    api: str | None


class ChildFailed(ConfigurationError):
    """A process of the stack ends again and again, or is not ready in time."""

    def __init__(self, message: str, *, child: str, lines: tuple[str, ...]) -> None:
        super().__init__(message, child=child, lines=lines)

    #: the process's name in the stack, such as ``worker1``
    child: str
    #: the last lines that it wrote
    lines: tuple[str, ...]
