"""Progress of a question's replies, on one line of the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from posology.llm.calls import ReplyProgress, Told
from posology.types import Call, Stage

_VERBS = {
    Stage.ANSWER: "answering",
    Stage.EXTRACT: "reading",
    Stage.REDUCE: "combining",
    Stage.REPAIR: "correcting",
    Stage.JUDGE: "checking",
    Stage.COMPRESS: "compressing",
}


@contextmanager
def shown_replies(console: Console) -> Iterator[Told | None]:
    """Show how far replies are, from the first sign of one on.

    Args:
        console: on standard error.

    Yields:
        What takes the progress; ``None``: the console is no terminal, and nothing is shown.
    """
    if not console.is_terminal:
        yield None
        return
    status = console.status("")

    def told(call: Call, now: ReplyProgress) -> None:
        status.update(Text(line(call.stage, now)))
        status.start()

    try:
        yield told
    finally:
        status.stop()


def line(stage: Stage, now: ReplyProgress) -> str:
    """Return what a model does, and how far it is."""
    verb = _VERBS.get(stage, str(stage))
    if now.written:
        return f"{verb} · {now.written:,} token{'s' if now.written > 1 else ''} written"
    if now.prompt is not None and now.read is not None:
        return f"{verb} · {now.read:,} of {now.prompt:,} prompt tokens read"
    return verb
