"""Events of the service: one log line each, with ids and numbers.

They are emitted by the standard library, so that a command that configures no logs loads nothing for them and prints
nothing; :mod:`orchestrator.logs.configuration` renders them. Text of questions, passages and replies is no field of any
event, except for :func:`question`; texts stand beside the fields, for spans alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal

from posology.errors import BudgetError, HeadroomReserved

#: logger of all events, and of the API's requests
EVENTS = "posology.events"
_log = logging.getLogger(EVENTS)
# else the standard library would print warnings of a process without logs to its standard error
_log.addHandler(logging.NullHandler())
#: characters of a question in a line
_SHOWN = 2_000
_questions = False


def note(
    event: str,
    level: int = logging.INFO,
    texts: Mapping[str, str] | None = None,
    /,
    **fields: object,
) -> None:
    """Write one line, if lines of that level are wanted.

    Args:
        event: what happened, e.g. ``job submitted``; the same for every such event.
        level: of the standard library.
        texts: attributes of its span (:mod:`orchestrator.logs.texts`); no line has them.
        **fields: ids and numbers; ``None`` is left out.
    """
    if _log.isEnabledFor(level):
        _log.log(level, event, extra={"fields": fields, "texts": texts or {}})


def flush() -> None:
    """Send what handlers of events hold back: a server that a signal ends runs no exit handlers. Blocking."""
    for handler in _log.handlers:
        handler.flush()


def question(text: str) -> Mapping[str, str]:
    """Return the field with a question's text; empty unless ``POSOLOGY_LOG_QUESTIONS`` asks for it."""
    return {"question": text[:_SHOWN]} if _questions else {}


def allow_questions(*, allowed: bool) -> None:
    """Say whether lines of this process may contain the text of questions. Default: no."""
    global _questions  # noqa: PLW0603 - logs are the process's
    _questions = allowed


def questions_allowed() -> bool:
    """Return whether lines of this process may contain the text of questions."""
    return _questions


def usd(amount: Decimal | None) -> str | None:
    """Return dollars as a field, exact; ``None``: unknown."""
    return None if amount is None else f"{amount:f}"


@contextmanager
def refusals(**ids: object) -> Iterator[None]:
    """Write one line for a refusal by a limit in the block; waiting for reserved budget is no refusal.

    Args:
        **ids: of what is refused.
    """
    try:
        yield
    except HeadroomReserved:
        raise
    except BudgetError as error:
        note_refusal(error, **ids)
        raise


def note_refusal(error: BudgetError, **ids: object) -> None:
    """Write the line of a refusal by a limit: which limit, and its numbers.

    Args:
        error: the refusal; its fields are numbers and names.
        **ids: of what is refused.
    """
    numbers = {k: usd(v) if isinstance(v, Decimal) else v for k, v in error.details.items()}
    note("refused by a limit", logging.WARNING, **{**numbers, "error": type(error).__name__, **ids})
