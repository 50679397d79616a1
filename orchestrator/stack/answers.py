"""Whether a running stack answers a question as a command would: the digest of the settings that matter."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from orchestrator.jobs.place import known_store
from orchestrator.settings import Auth
from orchestrator.stack.folder import StackInfo, read_stack
from posology.errors import ConfigurationError
from posology.llm.providers.table import PROVIDERS
from posology.version import __version__

if TYPE_CHECKING:
    from orchestrator.settings import Settings

#: Settings that change no answer: of queue, service and logs, of ingest, of speed. All others matter, also new ones.
_ELSEWHERE = frozenset(
    {
        "index", "redis_url", "home", "tenant", "auth", "hosts", "metrics_key", "console_key", "reports", "api_key", "otlp_endpoint",
        "retention_days", "max_queued", "max_stored", "redis_memory", "shutdown_grace", "lease", "worker_concurrency", "workers", "local_idle",
        "log_format", "log_level", "log_questions", "trace_texts",
        "cache", "xdg_cache", "embedder_threads", "concurrency", "self_information", "token_codes",
    }
)  # fmt: skip
#: settings that name a file, which may change under the same name
_FILES = ("prices", "qtable", "calibration", "memory", "tiktoken_files")
#: settings that may name a folder, relative to the current one
_PERHAPS_FOLDERS = ("embedder", "compressor_model", "reranker", "expand")


def digest(settings: Settings, index: str) -> str | None:
    """Return a text that is the same for settings that answer a question the same way.

    Args:
        settings: of a stack, or of a command.
        index: folder or address of the index.

    Returns:
        SHA-256, hexadecimal. ``None``: only requests with an API key are answered, or a stored key cannot be read.
    """
    if settings.auth is Auth.KEYS:
        return None
    known: dict[str, object] = {
        name: _plain(getattr(settings, name))
        for name in type(settings).model_fields
        if name not in _ELSEWHERE
    }
    known["index"] = index.rstrip("/") if "://" in index else str(Path(index).resolve())
    known |= {name: _file(path) for name in _FILES if (path := getattr(settings, name))}
    if any(getattr(settings, name) for name in _PERHAPS_FOLDERS):
        known["folder"] = str(Path.cwd())
    try:
        for provider in PROVIDERS:
            found = settings.credentials(provider)
            known[f"credentials of {provider}"] = [
                _plain(found.api_key),
                found.base_url,
                found.more,
            ]
    except ConfigurationError:
        return None
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def stack_for(settings: Settings, index: str | None) -> StackInfo | None:
    """Return the running stack that answers as a command with these settings would; ``None``: there is none.

    Args:
        settings: of the command.
        index: folder or address of the index, as given; ``None``: as configured.
    """
    stack = read_stack(Path(settings.home))
    place = index or settings.index
    if stack is None or stack.api_url is None or stack.answers is None or place is None:
        return None
    # the ledger of the same Redis pays
    if stack.version != __version__ or stack.redis_url != known_store(settings):
        return None
    return stack if stack.answers == digest(settings, place) else None


def _plain(value: object) -> str | None:
    if value is None:
        return None
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)


def _file(path: str) -> list[object]:
    place = Path(path).expanduser().resolve()
    try:
        found = place.stat()
    except OSError:
        return [str(place)]
    return [str(place), found.st_size, found.st_mtime_ns] if place.is_file() else [str(place)]
