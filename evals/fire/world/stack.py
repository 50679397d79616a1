"""The stack of ``posology up`` as a process of its own, with the options of a run: ``python -m evals.fire.world.stack``."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio

from orchestrator.stack.folder import StackInfo
from orchestrator.stack.options import API, WORKER, StackOptions
from orchestrator.stack.up import run_stack

#: runs a command from another checkout; its arguments: the checkout, the number of the process, of which the first runs
#: it, and the command
_BEFORE = '[ "$1" = 1 ] && cd "$0" && export PYTHONPATH="$0"; shift; exec "$@"'


def options(given: dict[str, Any]) -> StackOptions:
    """Return the options that a run asks for, as JSON holds them."""
    before, whole = given["before"], given["wholly_before"]
    older = ("sh", "-c", _BEFORE, before)
    return StackOptions(
        environment=os.environ,
        folder=Path(given["folder"]),
        redis_url=given["redis_url"],
        workers=given["workers"],
        concurrency=given["concurrency"],
        uploads=given["uploads"],
        port=given["port"],
        index=given["index"],
        overrides=given["overrides"],
        worker_overrides=given["worker_overrides"],
        start_timeout=300.0,
        worker_grace=10.0,
        worker_argv=(*older, "1" if whole else "{number}", *WORKER) if before else WORKER,
        api_argv=(*older, "1", *API) if before and whole else API,
    )  # fmt: skip


def _ready(info: StackInfo) -> None:
    print(json.dumps({"api": info.api_url}), flush=True)


def main() -> None:
    """Run until SIGTERM; the first line of the output has the address of the API."""
    given = json.loads(sys.argv[1])

    def tell(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    async def run() -> None:
        await run_stack(options(given), ready=_ready, tell=tell)

    anyio.run(run)


if __name__ == "__main__":
    main()
