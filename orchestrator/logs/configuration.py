"""Configuration of a process's logs: one line of JSON or of text for each record, from whatever library.

structlog renders the records of the standard library's loggers, which Celery, uvicorn and Posology write to.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import traceback
import warnings
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import structlog
from structlog.typing import EventDict, WrappedLogger

from orchestrator.logs import telemetry
from orchestrator.logs.events import EVENTS, allow_questions, questions_allowed
from orchestrator.settings import LogFormat

if TYPE_CHECKING:
    from types import TracebackType

    from orchestrator.settings import Settings

#: packages whose loggers have the configured level, and the server of the API; other libraries log warnings and errors
OURS = ("orchestrator", "posology", "strategies", "uvicorn", "workers")
#: loggers that bring handlers of their own
_FOREIGN = (
    "celery",
    "celery.task",
    "celery.redirected",
    "uvicorn",
    "uvicorn.error",
)
#: logger of lines that the API's own access log replaces: it would log whole addresses, with what a caller wrote
_REPLACED = "uvicorn.access"
#: shorter secrets would blank ordinary words
_SECRET = 6
#: keys of tenants and providers, passwords of addresses, and authorization headers, wherever they came from
_PATTERNS = (
    re.compile(r"\bpsl_[0-9a-f]{16}_[0-9a-f]+"),
    re.compile(r"\bsk-[A-Za-z0-9_*-]{8,}"),
    re.compile(r"(?<=://)[^/\s@\"]*:[^/\s@\"]*(?=@)"),
    re.compile(r"(?<=Bearer )[^\s\"]+"),
)
_HIDDEN = "***"
#: frames of a traceback that are kept, the innermost ones
_FRAMES = 12


def configure(settings: Settings, *, handler: logging.Handler | None = None) -> None:
    """Configure the logs of this process.

    Args:
        settings: format, level, and the secrets that no line may contain.
        handler: takes the lines; ``None``: standard error.
    """
    allow_questions(allowed=settings.log_questions)
    if handler is None:
        handler = logging.StreamHandler(sys.stderr)
    stream = getattr(handler, "stream", None)
    on_terminal = stream is not None and stream.isatty()
    console = settings.log_format is LogFormat.CONSOLE or (
        settings.log_format is LogFormat.AUTO and on_terminal
    )
    handler.setFormatter(formatter(secrets_of(settings), console=console, colors=on_terminal))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    level = logging.getLevelNamesMapping()[settings.log_level.value.upper()]
    for name in OURS:
        logging.getLogger(name).setLevel(level)
    for name in _FOREIGN:
        foreign = logging.getLogger(name)
        foreign.handlers.clear()
        foreign.propagate = True
    replaced = logging.getLogger(_REPLACED)
    replaced.handlers.clear()
    replaced.propagate = False
    telemetry.start(settings, level=level)
    logging.captureWarnings(capture=True)
    # a warning's line of source is of no use in a log
    warnings.formatwarning = lambda message, category, *_: f"{category.__name__}: {message}"


def formatter(
    secrets: Iterable[str] = (), *, console: bool = False, colors: bool = False
) -> logging.Formatter:
    """Return a formatter of records: fields, context, time and level, without secrets.

    Args:
        secrets: texts that no line may contain.
        console: text instead of JSON.
        colors: whether text has colors.
    """
    render: Any = (
        structlog.dev.ConsoleRenderer(colors=colors, sort_keys=False)
        if console
        else structlog.processors.JSONRenderer(default=str, ensure_ascii=False)
    )
    plain = {s for s in secrets if len(s) >= _SECRET}
    # as JSON and Python's own representation escape it
    written = {json.dumps(s, ensure_ascii=False)[1:-1] for s in plain} | {
        repr(s)[1:-1] for s in plain
    }
    known = sorted(plain | written, key=len, reverse=True)
    hidden = re.compile("|".join(re.escape(s) for s in known)) if known else None

    def rendered(logger: WrappedLogger, name: str, fields: EventDict) -> str:
        line = str(render(logger, name, fields))
        if hidden is not None:
            line = hidden.sub(_HIDDEN, line)
        for pattern in _PATTERNS:
            line = pattern.sub(_HIDDEN, line)
        return line

    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.contextvars.merge_contextvars, _fields, _traceback],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _ordered, rendered],
    )


def secrets_of(settings: Settings) -> set[str]:
    """Return every secret of the settings, as it is written, and the password of Redis's address."""
    found = {secret.get_secret_value() for secret in settings.secrets()}
    for text in list(found):
        if "://" in text:
            password = urlsplit(text).password or ""
            found |= {password, unquote(password)}
            # the address itself is no secret without it
            found.discard(text)
    return found


def _fields(_logger: WrappedLogger, _name: str, fields: EventDict) -> EventDict:
    record: logging.LogRecord = fields["_record"]
    given = getattr(record, "fields", {})
    fields.update({name: value for name, value in given.items() if value is not None})
    fields["level"] = record.levelname.lower()
    if record.name != EVENTS:
        fields["logger"] = record.name
    at = datetime.fromtimestamp(record.created, UTC)
    fields["timestamp"] = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return fields


def _traceback(_logger: WrappedLogger, _name: str, fields: EventDict) -> EventDict:
    """Show an exception by its class and places: its message may quote a question or a key."""
    found = fields.pop("exc_info", None)
    error = found[1] if isinstance(found, tuple) else found
    if not isinstance(error, BaseException):
        return fields
    fields["error"] = type(error).__name__
    if isinstance(error, OSError) or questions_allowed():
        fields["message"] = str(error)
    fields["at"] = _places(error.__traceback__)
    return fields


def _places(trace: TracebackType | None) -> list[str]:
    frames = traceback.extract_tb(trace)[-_FRAMES:]
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]


def _ordered(_logger: WrappedLogger, _name: str, fields: EventDict) -> EventDict:
    first = {name: fields.pop(name) for name in ("timestamp", "level", "event") if name in fields}
    return {**first, **fields}
