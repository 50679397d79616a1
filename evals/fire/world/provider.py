"""A provider with its own books and its own weather, as a process: ``python -m evals.fire.world.provider``.

Every request is a line of its books, written when it ends, with what it costs by the provider's own prices. The weather
is the share of requests that go wrong, and how; it is changed over HTTP (``POST /_weather``) while calls are under way,
and so is the list of prices (``POST /_prices``), by which every request is billed that ends from then on.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import random
import re
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from evals.fire.world.prices import BATCH, LISTS
from posology.testing.provider.batches.book import BatchBook, BatchFaults
from posology.testing.provider.echo import echo
from posology.testing.provider.faults import estimate
from posology.testing.provider.ledger import Entry, StubLedger
from posology.testing.provider.responses import Response
from posology.testing.provider.server import LoadServer
from posology.testing.provider.steps import (
    Broken,
    Cut,
    Hang,
    Malformed,
    NoSuchModel,
    Recorded,
    Reply,
    Status,
    Step,
)
from posology.types import Usage

_CASE = re.compile(r"\bcase (\d+)\.")
_LABEL = re.compile(r"\[\[(P\d+) ")
#: passages in which one case in seven finds nothing; fields of a reply that name evidence
_FEW, _NAMED = 4, ("statements", "quotes")
#: words of tenants, see :mod:`evals.fire.actors`
WORD = re.compile(r"\bword[0-9a-f]{12}\b")
#: tokens of output that a dishonest provider bills beyond what a request allows: more than any honest reply has
BEYOND = 5_000
#: what may go wrong with a request; a weather gives each a share
FATES = (
    "429", "500", "503", "hang", "drip", "cut before", "cut after", "cut within", "malformed",
    "no usage", "zero usage", "429 within", "502 within", "refusal", "retired", "beyond", "trickle",
    "stream cut", "stream ended", "stream silent", "stream failed",
)  # fmt: skip


class Weather:
    """Decides on each request: the same one meets the same fate in every run with the same seed and weather."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        #: shares of all requests
        self.shares: dict[str, float] = {}
        #: seconds until a good reply
        self.latency = (0.02, 0.3)

    def __call__(self, request: Recorded) -> Step:
        """Draw a step."""
        name = request.headers.get("x-client-request-id", "")
        draw = random.Random(f"{self._seed}:{name}")
        chance, low_high = draw.random(), self.latency
        reply = Reply(text=answer, usage=estimate, latency=draw.uniform(*low_high))
        for fate in FATES:
            chance -= self.shares.get(fate, 0.0)
            if chance < 0:
                return _step(fate, reply)
        return reply


def answer(asked: Any) -> str:
    """Return what an honest provider replies: for one case in seven nothing is found in a few passages.

    So ladders are refused, and end in a second search or in BriefContext.
    """
    reply, text = echo(asked), json.dumps(asked.get("messages"))
    case, shown = _CASE.search(text), set(_LABEL.findall(text))
    said = json.loads(reply)
    refuses = case is not None and int(case[1]) % 7 == 0 and len(shown) <= _FEW
    if not refuses or "answerable" not in said or "claims" in said:
        return reply
    return json.dumps(said | {"answerable": False} | {n: [] for n in _NAMED if n in said})


def told(value: object) -> str:
    """Return what the provider is told as it takes it: JSON in hexadecimal digits."""
    return json.dumps(value).encode().hex()


def _step(fate: str, reply: Reply) -> Step:
    text, usage = reply.text, reply.usage
    steps: dict[str, Step] = {
        "429": Status(code=429, headers={"retry-after": "0.2"}),
        "500": Status(code=500),
        "503": Status(code=503),
        "hang": Hang(seconds=20.0),
        "drip": Reply(text=text, usage=usage, drip=6.0),
        # every piece comes soon, and the last one after the call's timeout, which a stream has only for each piece
        "trickle": Reply(text=text, usage=usage, drip=30.0),
        "cut before": Cut(),
        "cut after": Cut(of=reply),
        "cut within": Cut(of=reply, after_bytes=40),
        "malformed": Malformed(),
        "no usage": Reply(text=text, usage=None, latency=reply.latency),
        # billed as any other
        "zero usage": Reply(text=text, usage=usage, latency=reply.latency, zeros=True),
        "429 within": Status(code=429, within=True, headers={"retry-after": "0.2"}),
        "502 within": Status(code=502, within=True),
        "refusal": Reply(text="I cannot help with that.", usage=usage, latency=reply.latency),
        "retired": NoSuchModel(),
        "beyond": Reply(text=text, usage=_beyond, latency=reply.latency),
        "stream cut": Broken(of=reply, by="cut"),
        "stream ended": Broken(of=reply, by="end"),
        "stream silent": Broken(of=reply, by="silence", seconds=20.0),
        "stream failed": Broken(of=reply, by="error"),
    }
    return steps[fate]


def _beyond(asked: Any, text: str) -> Usage:
    """More output than the request allows: what a provider must not bill."""
    fair = estimate(asked, text)
    most = asked.get("max_completion_tokens") or asked.get("max_tokens") or 0
    return Usage(input=fair.input, output=int(most) + BEYOND)


class Books(StubLedger):
    """Requests, also as lines of a file, with what each is about."""

    def __init__(self, file: TextIO) -> None:
        super().__init__()
        self._file = file
        #: of requests under way, and of rows of batches: what they ask
        self.asked: dict[str, Any] = {}
        #: number of the list in force
        self.prices = 0

    def end(self, entry: Entry, *, finished: bool, usage: Usage | None, delivered: bool) -> None:
        """Complete an entry, and write it."""
        super().end(entry, finished=finished, usage=usage, delivered=delivered)
        asked = self.asked.pop(entry.id, None) or self.asked.get(entry.client_id or "") or {}
        text = json.dumps(asked.get("messages"), ensure_ascii=False)
        usage = usage if finished else None
        share = BATCH if entry.played == "batch" else 1
        line = asdict(entry) | {
            "nano": None if usage is None else _nano(usage, *LISTS[self.prices]) // share,
            # for prices of another list: tokens of input and output, and the share that is not billed
            "tokens": None if usage is None else [usage.total_input, usage.total_output],
            "share": share,
            "prices": self.prices,
            "digest": hashlib.sha256(text.encode()).hexdigest()[:20] if asked else None,
            "words": sorted(set(WORD.findall(text))),
        }
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()


def _nano(usage: Usage, price_in: int, price_out: int) -> int:
    return usage.total_input * price_in + usage.total_output * price_out


class Server(LoadServer):
    """The stub, with paths for its weather and its prices."""

    def __init__(self, weather: Weather, book: BatchBook, books: Books) -> None:
        super().__init__(weather, batches=book)
        self._weather, self._books = weather, books

    def take(self, request: Recorded) -> tuple[Response, Entry]:
        """See :class:`LoadServer`."""
        response, entry = super().take(request)
        if isinstance(request.json, dict):
            self._books.asked[entry.id] = request.json
        return response, entry

    def look(self, method: str, path: str) -> Any:
        """See :class:`LoadServer`; ``POST /_weather?JSON`` sets the weather, ``/_prices?JSON`` the list of prices."""
        name, _, query = path.partition("?")
        if (method, name) == ("POST", "/_weather"):
            self._weather.shares = json.loads(bytes.fromhex(query))
            return self._weather.shares
        if (method, name) == ("POST", "/_prices"):
            self._books.prices = json.loads(bytes.fromhex(query))
            return self._books.prices
        return super().look(method, path)


async def _serve(given: argparse.Namespace) -> None:
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, over.set)
    # ends with the run, also with one that was killed
    loop.add_reader(sys.stdin, lambda: None if os.read(sys.stdin.fileno(), 1024) else over.set())
    given.folder.mkdir(exist_ok=True)
    with given.books.open("a", encoding="utf-8") as file:
        books = Books(file)

        def answer(row: Recorded) -> Step:
            books.asked[row.headers["x-client-request-id"]] = row.json
            return Reply(text=echo, usage=estimate)

        faults = BatchFaults(
            polls=2, expired=0.03, errored=0.03, broken=0.02, doubled=0.05, creates_lost=0.1, seed=given.seed
        )  # fmt: skip
        book = BatchBook(answer, faults, folder=given.folder)
        book.ledger = books
        server = Server(Weather(given.seed), book, books)
        listening = await server.start(port=given.port)
        print(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}", flush=True)
        await over.wait()
        listening.close()


def main() -> None:
    """Serve until SIGTERM, or the end of standard input; the first line of the output is the URL."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="keeps its batches")
    parser.add_argument("--books", type=Path, required=True, help="file of its books")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--port", type=int, default=0)
    asyncio.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
