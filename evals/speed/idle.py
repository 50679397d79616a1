"""A stack that has answered a few questions, has searched once, and is idle: ``python idle.py INDEX``, with the checkout as ``PYTHONPATH``.

Prints one line of JSON: peak memory of worker and API in MiB, and commands a second that Redis gets from them.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

import anyio

from evals.load.fanout import QUESTION, a_request, provider
from evals.load.throughput import over
from evals.peers.side import memory
from orchestrator.jobs.store import open_store
from orchestrator.stack.options import StackOptions
from orchestrator.stack.up import running_stack
from posology.client import Client
from posology.testing.provider.load import LoadStub

QUESTIONS, SECONDS = 8, 15.0
# of this checkout: an earlier one may lack it
count = runpy.run_path(str(Path(__file__).with_name("counting.py")))["count"]
#: processes of a stack, by a word of their command
PROCESSES = {"worker": b"workers.app", "api": b"uvicorn"}


def _pid(word: bytes) -> int:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if parent == os.getpid() and word in command:
            return int(folder.name)
    raise SystemExit(f"no process of the stack has {word.decode()} in its command")


async def _run(index: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, LoadStub() as stub:
        options = StackOptions(
            environment=os.environ,
            folder=Path(folder),
            index=index,
            port=0,
            overrides=provider(stub),
        )
        async with running_stack(options) as stack, open_store(stack.redis_url) as store:
            await over(store, [(await store.submit(a_request())).job for _ in range(QUESTIONS)])
            assert stack.api_url is not None
            async with Client(stack.api_url) as client:
                await client.search(QUESTION)
            found = {f"{name}_mib": memory(_pid(word)) / 2**20 for name, word in PROCESSES.items()}
            done = await count(store.redis, lambda: anyio.sleep(SECONDS))
            return found | {"redis_commands": done.commands / SECONDS}


if __name__ == "__main__":
    print(json.dumps(anyio.run(_run, sys.argv[1])))
