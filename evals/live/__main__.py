"""Asks a language model the questions of known answers, through the product and beside a plain RAG, and keeps every reply.

Usage: ``python -m evals.live ask --model MODEL [--url URL] [--sets pubmedqa …] [--ways router …] [--count N] [--half dev]``, then
``python -m evals.live report``; ``scoreboard`` does both, ``keep`` adds the rows to those that are kept. ``smoke --model MODEL`` asks five questions of the
packaged sample and needs no data.

Each question is a row of a file; a run that was interrupted goes on after the last one, and asks nothing that is kept. The
passages are those that the product retrieves, and the plain RAG reads all of them in their order.

Rows hold the replies, ids of passages and offsets, never the passages' text. The index of the shared data is made once, in
``--work``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from evals.live.beside import Peer, PeerFailed, asked_for, plain_prompt, read
from evals.live.connections import Recorded
from evals.live.recordings import record
from evals.live.report import report
from evals.live.rows import (
    ALONE,
    HIDDEN,
    PEER,
    PLAIN,
    SEARCH,
    all_rows,
    keep,
    key_of,
    known_row,
    outcome_row,
    query_of,
)
from evals.live.sets import SETS, Asked, asked, documents
from evals.live.smoke import smoke
from orchestrator.connections import Connections
from orchestrator.ingest.ingest import run_ingest
from orchestrator.ingest.writer import Target
from orchestrator.models import Models
from orchestrator.question.request import Request
from orchestrator.service import Service, make_service
from orchestrator.settings import load_settings
from posology.errors import PosologyError
from posology.llm.accounting import Account
from posology.llm.models.names import parse
from posology.llm.providers.table import PROVIDERS
from posology.types import Call, Message, PromptId, Role, Stage
from posology.types.tables import Document
from strategies.tables.presets import PICO
from strategies.tables.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from posology.index.search.retriever import Retriever
    from posology.types import Query, Ranking, Retrieval, Retrieved

#: what is asked of the product, by the name of the way; each changes the default request
WAYS: dict[str, dict[str, Any]] = {
    "router": {},
    "direct": {"strategy": "direct"},
    "compressed": {"strategy": "compressed"},
    "copied": {"strategy": "direct", "quotes": "copied"},
    "briefcontext": {"strategy": "briefcontext", "partition_size": 2},
    "repair": {"strategy": "direct", "support": "repair"},
    "judge": {"strategy": "direct", "support": "model"},
    SEARCH: {"policy": "router:escalate=search"},
    HIDDEN: {"policy": "router:escalate=search"},
}
CELLS = "cells"
#: output tokens of the plain RAG's reply
_PLAIN_TOKENS = 300
_PROMPT = PromptId(name="plain", digest="0" * 16)


class Later:
    """A retriever that keeps a passage from the first search, as if others were nearer to the question.

    Args:
        inner: finds passages.
    """

    def __init__(self, inner: Retriever) -> None:
        self._inner = inner
        #: the passage; ``None``: none is kept back
        self.passage: str | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def retrieve(self, query: Query, k: int, *args: Any, **more: Any) -> Retrieval:
        """Return the k best passages without the one that is kept back."""
        if self.passage is None:
            return await self._inner.retrieve(query, k, *args, **more)
        found = await self._inner.retrieve(query, k + 1, *args, **more)
        others = [one for one in found.passages if one.passage.id != self.passage]
        return replace(
            found,
            passages=tuple(others[:k]),
            dense=self._without(found.dense, k),
            bm25_rerank=self._without(found.bm25_rerank, k),
            bm25=self._without(found.bm25, k),
            fused=self._without(found.fused, k),
        )

    def _without(self, ranking: Ranking, k: int) -> Ranking:
        hits = [hit for hit in ranking.hits if hit.passage_id != self.passage]
        return replace(ranking, hits=tuple(hits[:k]))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Desk:
    """What answers questions, and what it sends and gets meanwhile."""

    service: Service
    connections: Connections
    model: str
    k: int
    kept: list[dict[str, Any]]
    #: what the product retrieves by
    later: Later
    #: paper-qa's program; ``None``: it is not asked
    peer: Peer | None

    async def ask(self, one: Asked, way: str) -> dict[str, Any]:
        """Ask in one way, and return what became of it."""
        own = {PLAIN: self.plain, ALONE: self.alone, CELLS: self.cells, PEER: self.paperqa}.get(way)
        return await (own(one) if own else self.product(one, way))

    async def product(self, one: Asked, way: str) -> dict[str, Any]:
        """Ask the product, and return what became of it."""
        self.later.passage = one.passage if way == HIDDEN else None
        request = Request(query=query_of(one), model=self.model, k=self.k, **WAYS[way])
        account = Account()
        found = await self.service.ask(request, account)
        return outcome_row(one, found) | {"usd": _usd(account)}

    async def _search(self, one: Asked) -> Retrieval:
        """Return the passages that the product would read."""
        return await self.service.search(query_of(one), k=self.k, mode="fused")

    async def cells(self, one: Asked) -> dict[str, Any]:
        """Fill in the cells of a table from the question's own passage."""
        found = await self._search(one)
        passages = {p.passage.id: p.passage for p in found.passages}
        own = passages.get(one.passage) or found.passages[0].passage
        complete = self.connections.complete(self.model, Account())
        row = await Reading(fields=PICO, model=self.model)(Document.of([own]), complete)
        filled = [cell for cell in row.cells if cell.value is not None]
        return {
            "outcome": "answered",
            "text": None,
            "verdict": None,
            "right": None,
            "retrieved": [own.id],
            "filled": len(filled),
            "refused": sum(cell.refused is not None for cell in row.cells),
        }

    async def plain(self, one: Asked) -> dict[str, Any]:
        """Ask the plain RAG: passages, question, an answer and the verdict."""
        return await self._plain(one, (await self._search(one)).passages)

    async def alone(self, one: Asked) -> dict[str, Any]:
        """Ask the model without passages: what it remembers."""
        return await self._plain(one, ())

    async def _plain(self, one: Asked, passages: Sequence[Retrieved]) -> dict[str, Any]:
        call = Call(
            stage=Stage.ANSWER,
            model=self.model,
            query=query_of(one),
            excerpts=(),
            messages=(Message(role=Role.USER, content=plain_prompt(one, passages)),),
            prompt=_PROMPT,
            max_tokens=_PLAIN_TOKENS,
        )
        account = Account()
        reply = (await self.connections.complete(self.model, account)(call)).text
        return read(one, reply) | {
            "retrieved": [p.passage.id for p in passages],
            "usd": _usd(account),
        }

    async def paperqa(self, one: Asked) -> dict[str, Any]:
        """Ask paper-qa over the same passages.

        Raises:
            PeerFailed: it has no answer.
        """
        assert self.peer is not None
        found = await self._search(one)
        texts = [f"{p.passage.title}\n{p.passage.text}" for p in found.passages]
        asked = {"question": f"{one.question}{asked_for(one)}", "texts": texts}
        began = time.perf_counter()
        said = await asyncio.to_thread(self.peer.ask, asked)
        if "error" in said:
            raise PeerFailed(said["error"])
        reply = said.pop("text")
        self.kept.append(said | {"reply": reply, "seconds": round(time.perf_counter() - began, 2)})
        return read(one, reply) | {"retrieved": [p.passage.id for p in found.passages]}


def _usd(account: Account) -> str | None:
    """Return the dollars of a question as a decimal number; ``None``: unknown."""
    return None if account.cost is None else str(account.cost)


async def _ask(args: argparse.Namespace) -> None:
    work: Path = args.work
    rows = work / args.rows
    done = {key_of(row) for row in all_rows(rows) if row["outcome"] != "failed"}
    todo = [
        (one, way)
        for name in args.sets
        # one way after the other: a server keeps the beginning that its prompts share
        for way in args.ways
        for one in asked(args.data, name, args.half)[: args.count]
        if (args.label or args.model, way, one.key) not in done
    ]
    settings = load_settings()
    kept: list[dict[str, Any]] = []
    models = Models(settings.embedder, settings.embedding)
    connections = Recorded(settings, offline=lambda: models.offline(settings.reading), kept=kept)
    service = await make_service(settings, models, connections, str(work / "index"))
    later = Later(service.pipeline.retriever)
    service.pipeline.retriever = cast("Retriever", later)
    desk = Desk(
        service=service,
        connections=connections,
        model=args.model,
        k=args.k,
        kept=kept,
        later=later,
        peer=_peer(args) if PEER in args.ways else None,
    )
    for number, (one, way) in enumerate(todo, 1):
        kept.clear()
        began = time.perf_counter()
        try:
            found = await desk.ask(one, way)
        except PosologyError as error:
            found = {
                "outcome": "failed",
                "error": f"{type(error).__name__}: {error}"[:500],
                "right": False,
            }
        row = {
            "model": args.label or args.model,
            "way": way,
            "half": args.half,
            **known_row(one),
            **found,
            "seconds": round(time.perf_counter() - began, 2),
            "calls": list(kept),
        }
        with rows.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
        print(
            f"{number}/{len(todo)} {way} {one.key}: {row['outcome']} {row.get('verdict')} (gold {one.verdict}) {row['seconds']} s",
            flush=True,
        )
    await connections.aclose()


def _peer(args: argparse.Namespace) -> Peer:
    """Start paper-qa's program in its environment."""
    program = Path(__file__).with_name("peer.py")
    address = args.url.rstrip("/").removesuffix("/v1")
    return Peer(str(args.peer), str(program), args.model.partition(":")[2], f"{address}/v1")


def _index(args: argparse.Namespace) -> None:
    """Make the index of all sets, or add what is new to it."""
    passages, new = args.work / "passages.jsonl", args.work / "new.jsonl"
    text = "".join(json.dumps(asdict(one)) + "\n" for one in documents(args.data))
    if passages.exists() and passages.read_text(encoding="utf-8") == text:
        return
    new.write_text(text, encoding="utf-8")
    run_ingest([new], load_settings(), Target(place=str(args.work / "index")))
    new.replace(passages)


def main() -> None:
    """Parse the arguments and run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "command", choices=("ask", "scoreboard", "report", "keep", "record", "smoke")
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument(
        "--work", type=Path, default=Path("build/live"), help="folder of the index and the rows"
    )
    parser.add_argument("--model", default="", help="model, as for posology ask")
    parser.add_argument(
        "--label", default="", help="name of the run in the rows; default: the model"
    )
    parser.add_argument("--url", default="", help="address of its server; default: the usual one")
    parser.add_argument("--sets", nargs="+", choices=tuple(SETS), default=tuple(SETS))
    parser.add_argument(
        "--ways", nargs="+", choices=(*WAYS, PLAIN, ALONE, CELLS, PEER), default=("router", PLAIN)
    )
    parser.add_argument(
        "--peer", type=Path, help="Python of an environment with paper-qa, for its way; needs --url"
    )
    parser.add_argument("--count", type=int, default=60, help="questions of a set")
    parser.add_argument("--k", type=int, default=4, help="passages that are retrieved")
    parser.add_argument(
        "--rows", default="rows.jsonl", help="name of the file of rows in the folder"
    )
    parser.add_argument("--half", choices=("dev", "test"), default="test")
    args = parser.parse_args()
    if PEER in args.ways and not (args.peer and args.url):
        parser.error("the way paper-qa needs --peer and --url")
    args.work.mkdir(parents=True, exist_ok=True)
    if args.command == "report":
        print(report(all_rows(args.work / args.rows), args.label or args.model))
        return
    if args.command == "keep":
        keep(args.work / args.rows)
        return
    if args.command == "record":
        asyncio.run(record(args.data, args.work / args.rows, args.label or args.model))
        return
    os.environ |= {
        "POSOLOGY_CONFIG": "off",
        "POSOLOGY_HOME": str(args.work / "home"),
        "POSOLOGY_CALL_DEADLINE": "1800",
    }
    if args.url:
        os.environ[PROVIDERS[parse(args.model).provider].url_variable or ""] = args.url
    if args.command == "smoke":
        given = args.model.removeprefix("gguf:")
        if given != args.model and not Path(given).exists():
            print(f"skipped: there is no file {given}")
            return
        sys.exit(asyncio.run(smoke(args.model, args.work)))
    _index(args)
    asyncio.run(_ask(args))
    if args.command == "scoreboard":
        print(report(all_rows(args.work / args.rows), args.label or args.model))


if __name__ == "__main__":
    main()
