"""A stub provider as a process of its own: ``python -m posology.testing.provider.serve --help``."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from posology.testing.provider.batches.book import BatchBook, BatchFaults
from posology.testing.provider.faults import Chance, Faults
from posology.testing.provider.server import LoadServer
from posology.testing.provider.steps import Reply

_DEFAULTS = Faults()


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until told to stop; the first line of the output is the URL."""
    options = _parser().parse_args(arguments)
    faults = Faults(
        latency=tuple(options.latency),
        rate_limited=options.rate_limited,
        retry_after=options.retry_after,
        errors=options.errors,
        cuts=options.cuts,
        errors_within=options.errors_within,
        zero_usage=options.zero_usage,
        breaks=options.breaks,
        cuts_after_work=options.cuts_after_work,
    )
    reply, usage = _load(options.reply), _load(options.usage)
    chance = Chance(faults, reply=reply, usage=usage, seed=options.seed)
    book = BatchBook(
        lambda _: Reply(text=reply, usage=usage),
        BatchFaults(**json.loads(options.batch_faults)),
        folder=options.batches,
    )
    server = LoadServer(chance, batches=book)
    asyncio.run(_serve(server, options.host, options.port, with_stdin=options.with_stdin))


async def _serve(server: LoadServer, host: str, port: int, *, with_stdin: bool) -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, over.set)
    if with_stdin:
        loop.add_reader(
            sys.stdin, lambda: None if os.read(sys.stdin.fileno(), 1024) else over.set()
        )
    listening = await server.start(host=host, port=port)
    bound = listening.sockets[0].getsockname()[1]
    print(f"http://{host}:{bound}", flush=True)  # noqa: T201 - who started it reads this
    await over.wait()
    # connections are not waited for: a provider that stops does not, and ours are idle or cut
    listening.close()


def _load(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    loaded: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return loaded


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="A stub provider that speaks both wire formats.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument(
        "--latency", type=float, nargs=2, default=_DEFAULTS.latency, metavar=("LOW", "HIGH"),
        help="seconds until a reply, uniform between the two",
    )  # fmt: skip
    for option, what in (
        ("rate-limited", "share of 429"),
        ("retry-after", "seconds that a 429 asks to wait"),
        ("errors", "share of 500"),
        ("cuts", "share of cut connections"),
        ("errors-within", "share of errors in replies of status 200"),
        ("zero-usage", "share of replies that say 0 for every count of tokens"),
        ("breaks", "share of streams that break off in the middle"),
        ("cuts-after-work", "share of the cuts that come after the work was done and billed"),
    ):
        default = getattr(_DEFAULTS, option.replace("-", "_"))
        parser.add_argument(f"--{option}", type=float, default=default, help=what)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--reply", default="posology.testing.provider.echo:echo", metavar="MODULE:FUNCTION",
        help="from a request's body to the text of the reply",
    )  # fmt: skip
    parser.add_argument(
        "--usage", default="posology.testing.provider.faults:estimate", metavar="MODULE:FUNCTION",
        help="from a request's body and the text of the reply to the tokens that are billed",
    )  # fmt: skip
    parser.add_argument(
        "--batch-faults", default="{}", metavar="JSON", help="fields of BatchFaults"
    )
    parser.add_argument(
        "--batches", type=Path, metavar="FOLDER", help="where batches outlive the process"
    )
    parser.add_argument(
        "--with-stdin", action="store_true", help="stop when standard input ends, too"
    )
    return parser


if __name__ == "__main__":
    main()
