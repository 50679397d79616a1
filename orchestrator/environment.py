"""The environment of this process, for its libraries and its children; settings are read in ``orchestrator.settings``.

Imports nothing heavy: every command begins here.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping
from contextlib import suppress

from orchestrator.deferred import LANCE_CLIENT, defer

#: environment variables that libraries read at import; the user's own values win
_FOR_LIBRARIES = {
    # progress bars and warnings would appear in the middle of an answer
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    # a download names neither Python nor the libraries
    "HF_HUB_DISABLE_TELEMETRY": "1",
    # it warns about problems that it handles itself, once for every file
    "LANCEDB_LOG": "error",
    # Rust threads inside worker threads slow each other down
    "TOKENIZERS_PARALLELISM": "false",
    # it would read the metadata of every installed package to look for plugins
    "PYDANTIC_DISABLE_PLUGINS": "__all__",
    # a passage's columns are then read by one access each, not two: 16 bytes a passage stay in memory
    "LANCE_READ_CACHE_REPETITION_INDEX": "1",
    # idle OpenMP threads spin by default, and starve other processes on the same cores
    "OMP_WAIT_POLICY": "PASSIVE",
    # products of a few hundred rows end before a second thread wakes, and it spins after each
    "OPENBLAS_NUM_THREADS": "1",
}

#: objects more, after which a process that serves looks for garbage; Python's own default is 700
_GARBAGE = 10_000

#: arenas of memory of a process that serves, and the parameter of ``mallopt`` for them (``malloc.h``)
_ARENAS, _M_ARENA_MAX = 2, -8

#: of processes that serve, read by the C library before anything else runs; the user's own values win. A thread keeps freed
#: memory for itself only in pieces of up to 256 bytes: up to glibc's 1,032 bytes, 130 threads keep 30 MiB, after hours.
FOR_SERVICES = {"GLIBC_TUNABLES": "glibc.malloc.tcache_max=256"}


def environment() -> Mapping[str, str]:
    """Return the whole environment, for child processes, whose output is read as UTF-8."""
    return {**os.environ, "PYTHONIOENCODING": "utf-8"}


def debug_wanted() -> bool:
    """Return whether tracebacks are wanted; works even if settings are invalid."""
    return os.environ.get("POSOLOGY_DEBUG", "").lower() not in ("", "0", "false", "no", "off")


def prepare_libraries() -> None:
    """Set environment variables that libraries read, and defer what LanceDB imports and hardly needs.

    The user's own values stay; to those of ``NO_PROXY``, this machine is added. Call it before torch, transformers or
    LanceDB is imported.
    """
    defer(LANCE_CLIENT)
    for name, value in _FOR_LIBRARIES.items():
        os.environ.setdefault(name, value)
    if any(name.lower().endswith("_proxy") for name in os.environ):
        from posology.network.proxies import without_loopback

        # object storage, OpenTelemetry and credentials of clouds are reached by clients of libraries
        os.environ.update(without_loopback(os.environ))


def prepare_process() -> None:
    """Do what :func:`prepare_libraries` does, in a process that serves for long, and let its threads share their memory.

    glibc opens eight arenas of memory for each core, and each keeps what was freed in it: a process of many threads grows
    by the hour. ``MALLOC_ARENA_MAX`` of the user's own wins; other C libraries have no arenas. Arrow's own pool keeps some
    for each thread, too, and the C library's serves as well. Call it before threads start and before Arrow is imported.

    A call to a model makes thousands of objects, and hardly any that only the garbage collector frees: it looks for them
    less often, which saves a worker 4 % of its processor time.
    """
    # no command needs it
    import ctypes

    gc.set_threshold(_GARBAGE)

    prepare_libraries()
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    own = os.environ.get("MALLOC_ARENA_MAX") or "arena_max" in os.environ.get("GLIBC_TUNABLES", "")
    if not own:
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)
