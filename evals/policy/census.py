"""Counts which arm a policy takes for questions, by order and number of passages, and what it costs.

Usage: ``python -m evals.policy.census [--set SET] [--questions N] [--k 8 16] [--order fused pruner …] [--policy POLICY]``.

SET is ``sample``, 40 questions over the sample notes; ``pubmedqa``, over an index of pool.jsonl.gz (``--index``); or ``bioasq``, the
questions over experts' snippets that the packaged cross-encoder did not learn from (the index is built once).
Arms: a ladder of whole passages, all passages in one call, compressed passages, BriefContext at once. Every question is
answered by the offline reader, billed as gpt-4o-mini; the cost is a multiple of that of direct RAG over all passages.
An order is a mode, or a re-ranker of ``POSOLOGY_RERANKER``, which re-ranks the fused order. The offline reader loses
nothing in the middle: the cost of BriefContext shows here, not its use. Whatever the order, BriefContext follows a
refused ladder, and that is part of the cost. Fails if an order without a calibration sends a question to BriefContext
at once.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import anyio
import numpy as np

from evals.papers.bioasq import open_bench
from orchestrator.environment import prepare_libraries
from orchestrator.ingest.ingest import run_ingest
from orchestrator.ingest.writer import Target
from orchestrator.models import Models
from orchestrator.question.request import Request
from orchestrator.service import Service, make_service, open_connections
from orchestrator.settings import Settings
from policies.affordable import COMPRESSED, PARTITIONED
from policies.calibration import packaged
from posology.corpus import sample
from posology.llm.accounting import Account
from posology.llm.offline.reader import NAME
from posology.query import make_query
from posology.types import MODES, Dose, Mode, Query
from training.gold import DATA, WORK, pubmedqa

_BILLED_AS = "openai:gpt-4o-mini"
ARMS = ("ladder", "one call", "compressed", "BriefContext")
_DRAWS = 2_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Count:
    """Arms of all questions in one order, with one number of passages."""

    order: str
    k: int
    #: whether the packaged calibration has a model for it
    calibrated: bool
    #: questions by arm
    arms: Counter[str] = field(default_factory=Counter)
    #: dollars of the policy's doses, and of direct RAG over all passages, one a question
    cost: list[float] = field(default_factory=list)
    direct: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """Cost as a multiple of direct RAG's."""
        return sum(self.cost) / sum(self.direct)

    @property
    def interval(self) -> tuple[float, float]:
        """95 % bootstrap interval of the ratio, over questions."""
        n = len(self.cost)
        picked = np.random.default_rng(0).integers(0, n, (_DRAWS, n))
        ratios = np.array(self.cost)[picked].sum(axis=1) / np.array(self.direct)[picked].sum(axis=1)
        low, high = np.percentile(ratios, [2.5, 97.5])
        return float(low), float(high)

    @property
    def fails(self) -> bool:
        """Whether an order without a calibration is given to BriefContext at once."""
        return not self.calibrated and self.arms["BriefContext"] > 0

    @property
    def row(self) -> str:
        """Row of the table."""
        arms = " | ".join(str(self.arms[arm]) for arm in ARMS)
        known = "yes" if self.calibrated else "no"
        low, high = self.interval
        return f"| {self.order} | {self.k} | {known} | {arms} | {self.ratio:.2f} [{low:.2f}, {high:.2f}] |"


def arm_of(dose: Dose) -> str:
    """Return the name in :data:`ARMS` of a dose."""
    if dose.strategy == PARTITIONED:
        return "BriefContext"
    if dose.strategy == COMPRESSED:
        return "compressed"
    return "ladder" if len(dose.rungs) > 1 else "one call"


async def ask(service: Service, query: Query, mode: Mode, count: Count) -> None:
    """Answer a question by the policy and by direct RAG, and count it."""
    for strategy, costs in ((None, count.cost), ("direct", count.direct)):
        account = Account()
        request = Request(query=query, model=NAME, k=count.k, mode=mode, strategy=strategy)
        report = await service.ask(request, account)
        assert account.cost is not None
        costs.append(float(account.cost))
        if strategy is None:
            count.arms[arm_of(report.decision.dose)] += 1


async def census(
    prices: Path, place: Path, queries: Sequence[Query], given: argparse.Namespace
) -> list[Count]:
    """Return the counts of each order and number of passages."""
    settings = Settings.model_validate(
        {"POSOLOGY_PRICES": str(prices), "POSOLOGY_POLICY": given.policy}
    )
    models = Models(None)
    async with open_connections(settings, models) as connections:
        services, counts = {}, []
        for order, k in product(given.order, given.k):
            mode = _mode(order)
            reranker = None if mode == order else order
            if order not in services:
                own = settings.model_copy(update={"reranker": reranker})
                services[order] = await make_service(own, models, connections, place)
            known = services[order].order(mode) in packaged().models
            counts.append(Count(order=order, k=k, calibrated=known))
        # question by question, so that the reader still knows what it read
        for number, query in enumerate(queries, 1):
            for count in counts:
                await ask(services[count.order], query, _mode(count.order), count)
            if number % 50 == 0:
                print(f"{number} of {len(queries)} questions", file=sys.stderr, flush=True)
    return counts


def _mode(order: str) -> Mode:
    return next((one for one in MODES if one == order), "fused")


@contextmanager
def opened(given: argparse.Namespace, folder: Path) -> Iterator[tuple[Path, list[Query]]]:
    """Yield the index and the questions of a set."""
    if given.set == "pubmedqa":
        yield given.index, [make_query(one.text) for one in pubmedqa(given.data)]
    elif given.set == "bioasq":
        bench = open_bench(given.data, given.work)
        asked = [one.query for one in bench.corpus.questions]
        random.Random(0).shuffle(asked)
        yield bench.place, asked
    else:
        yield from _sampled(folder)


def _sampled(folder: Path) -> Iterator[tuple[Path, list[Query]]]:
    with sample.notes_file() as notes:
        run_ingest([notes], Settings(), Target(place=str(folder / "index")))
        yield folder / "index", [one.query for one in sample.questions()]


def main(argv: list[str] | None = None) -> int:
    """Count and print; the exit status is 1 where an order without a calibration fails."""
    parser = argparse.ArgumentParser(prog="evals.policy.census", description=__doc__)
    parser.add_argument("--set", choices=("sample", "pubmedqa", "bioasq"), default="sample")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    parser.add_argument("--work", type=Path, default=WORK, help="where indices are kept")
    parser.add_argument("--index", type=Path, help="index of pool.jsonl.gz, for pubmedqa")
    parser.add_argument("--questions", type=int, default=500, help="most questions")
    parser.add_argument("--k", type=int, nargs="+", default=[8, 16], help="numbers of passages")
    parser.add_argument("--order", nargs="+", default=["fused", "pruner"], help="modes, re-rankers")
    parser.add_argument("--policy", default="router", help="policy with its settings")
    given = parser.parse_args(argv)
    if given.set == "pubmedqa" and given.index is None:
        parser.error("--set pubmedqa needs --index, an index of pool.jsonl.gz")
    prepare_libraries()
    with tempfile.TemporaryDirectory() as folder:
        prices = Path(folder) / "prices.toml"
        prices.write_text(f'[shadow]\n"{NAME}" = "{_BILLED_AS}"\n', encoding="utf-8")
        with opened(given, Path(folder)) as (place, queries):
            counts = anyio.run(census, prices, place, queries[: given.questions], given)
    print(f"| order | k | calibrated | {' | '.join(ARMS)} | cost / direct |")
    print("| --- " * (len(ARMS) + 4) + "|")
    print(*(count.row for count in counts), sep="\n")
    return int(any(count.fails for count in counts))


if __name__ == "__main__":
    raise SystemExit(main())
