"""Counts which arm a policy takes for the sample questions, by order and number of passages, and what it costs.

Usage: ``python -m evals.census [--k 8 16] [--order fused pruner …] [--policy POLICY]``.

Arms: a ladder of whole passages, all passages in one call, compressed passages, BriefContext at once. Every question is
answered by the offline reader, billed as gpt-4o-mini; the cost is a multiple of that of direct RAG over all passages.
An order is a mode, or a re-ranker of ``POSOLOGY_RERANKER``, which re-ranks the fused order. The offline reader loses
nothing in the middle: the cost of BriefContext shows here, not its use. Whatever the order, BriefContext follows a
refused ladder, and that is part of the cost. Fails if an order without a calibration sends a question to BriefContext
at once.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

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
from posology.types import MODES, Dose, Mode

_BILLED_AS = "openai:gpt-4o-mini"
ARMS = ("ladder", "one call", "compressed", "BriefContext")


@dataclass(frozen=True, kw_only=True, slots=True)
class Count:
    """Arms of all questions in one order, with one number of passages."""

    order: str
    k: int
    #: whether the packaged calibration has a model for it
    calibrated: bool
    #: questions by arm
    arms: Counter[str]
    #: dollars of the policy's doses, and of direct RAG over all passages
    cost: float
    direct: float

    @property
    def ratio(self) -> float:
        """Cost as a multiple of direct RAG's."""
        return self.cost / self.direct

    @property
    def fails(self) -> bool:
        """Whether an order without a calibration is given to BriefContext at once."""
        return not self.calibrated and self.arms["BriefContext"] > 0

    @property
    def row(self) -> str:
        """Row of the table."""
        arms = " | ".join(str(self.arms[arm]) for arm in ARMS)
        known = "yes" if self.calibrated else "no"
        return f"| {self.order} | {self.k} | {known} | {arms} | {self.ratio:.2f} |"


def arm_of(dose: Dose) -> str:
    """Return the name in :data:`ARMS` of a dose."""
    if dose.strategy == PARTITIONED:
        return "BriefContext"
    if dose.strategy == COMPRESSED:
        return "compressed"
    return "ladder" if len(dose.rungs) > 1 else "one call"


async def count(service: Service, order: str, mode: Mode, k: int) -> Count:
    """Answer all sample questions by the policy and by direct RAG."""
    arms: Counter[str] = Counter()
    cost = {None: 0.0, "direct": 0.0}
    for question in sample.questions():
        for strategy in cost:
            account = Account()
            request = Request(query=question.query, model=NAME, k=k, mode=mode, strategy=strategy)
            report = await service.ask(request, account)
            assert account.cost is not None
            cost[strategy] += float(account.cost)
            if strategy is None:
                arms[arm_of(report.decision.dose)] += 1
    known = service.order(mode) in packaged().models
    return Count(
        order=order, k=k, calibrated=known, arms=arms, cost=cost[None], direct=cost["direct"]
    )


async def census(folder: Path, orders: Sequence[str], depths: Sequence[int], policy: str) -> int:
    """Print a row for each order and number of passages; returns how many fail."""
    prices, place = folder / "prices.toml", str(folder / "index")
    prices.write_text(f'[shadow]\n"{NAME}" = "{_BILLED_AS}"\n', encoding="utf-8")
    fails = 0
    for order in orders:
        mode: Mode = next((one for one in MODES if one == order), "fused")
        settings = Settings.model_validate(
            {
                "POSOLOGY_PRICES": str(prices),
                "POSOLOGY_POLICY": policy,
                "POSOLOGY_RERANKER": None if mode == order else order,
            }
        )
        models = Models(None)
        async with open_connections(settings, models) as connections:
            service = await make_service(settings, models, connections, place)
            for k in depths:
                found = await count(service, order, mode, k)
                print(found.row, flush=True)
                fails += found.fails
    return fails


def main(argv: list[str] | None = None) -> int:
    """Count and print; the exit status is 1 where an order without a calibration fails."""
    parser = argparse.ArgumentParser(prog="evals.census", description=__doc__)
    parser.add_argument("--k", type=int, nargs="+", default=[8, 16], help="numbers of passages")
    parser.add_argument("--order", nargs="+", default=["fused", "pruner"], help="modes, re-rankers")
    parser.add_argument("--policy", default="router", help="policy with its settings")
    given = parser.parse_args(argv)
    prepare_libraries()
    print(f"| order | k | calibrated | {' | '.join(ARMS)} | cost / direct |")
    print("| --- " * (len(ARMS) + 4) + "|")
    with tempfile.TemporaryDirectory() as folder, sample.notes_file() as notes:
        run_ingest([notes], Settings(), Target(place=str(Path(folder) / "index")))
        fails = anyio.run(census, Path(folder), given.order, given.k, given.policy)
    return 1 if fails else 0


if __name__ == "__main__":
    raise SystemExit(main())
