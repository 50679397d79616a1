"""Measures how far off cost estimates are, and how fast they are made.

Usage: ``python -m evals.money.estimates [--data PATH --index DIR] [--questions N]``.

The sample questions, and PubMedQA's with an index of the pool, are estimated and then answered by the offline reader,
billed as gpt-4o-mini. For each strategy, and for the default policy: expected and actual cost, each question's
ratio, the share between low and worst, and the ratio of worst to actual.

The offline reader counts with the estimates' tokenizer, and its reply lengths were measured on the sample questions.
So the sample tests the arithmetic, and PubMedQA also tests guessed lengths. No run tests a provider's own count; see
``orchestrator/question/estimates/tokens.py``. Fails if a question costs more than its worst case.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import anyio
from anyio import to_thread

from orchestrator.environment import prepare_libraries
from orchestrator.ingest.ingest import run_ingest
from orchestrator.ingest.writer import Target
from orchestrator.models import Models
from orchestrator.question.estimates.accuracy import Compared, accuracy
from orchestrator.question.estimates.costs import make_estimator
from orchestrator.question.estimates.rows import Estimated, Estimates, read_rows
from orchestrator.service import Service, make_service, open_connections
from orchestrator.settings import Settings
from posology.corpus import sample
from posology.llm.accounting import Account
from strategies import STRATEGIES
from training.gold import need, rows

_BILLED_AS = "openai:gpt-4o-mini"
_PUBMEDQA = "pubmedqa_train.jsonl.gz"


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """Questions and where they are answered from."""

    name: str
    place: str
    lines: Sequence[str]


async def _compare(
    service: Service, found: Sequence[Estimated], strategy: str | None
) -> list[Compared]:
    compared = []
    for one in found:
        row = one.row.request
        estimate = one.decided if strategy is None else one.of(strategy)
        assert row is not None
        assert estimate is not None
        account = Account()
        asked = row.model_copy(update={"strategy": strategy, "policy": None}).to_request(
            service.settings
        )
        await service.ask(asked, account)
        repeated = any(attempt.attempt > 1 for attempt in account.attempts)
        compared.append(Compared(estimate=estimate, actual=account.cost, repeated=repeated))
    return compared


async def _run(asked: Asked, settings: Settings) -> int:
    """Prints a row a strategy; returns how many questions cost more than their worst."""
    models, over = Models(None), 0
    async with open_connections(settings, models) as connections:
        service = await make_service(settings, models, connections, asked.place)
        estimates = Estimates(
            service=service, estimator=make_estimator(settings, connections), settings=settings
        )
        rows = list(read_rows(asked.lines, {}, settings))
        # once, so that what is loaded when it is first needed is not measured
        await estimates(rows[:1])
        started = time.perf_counter()
        found = await estimates(rows)
        seconds = time.perf_counter() - started
        for strategy in (*STRATEGIES, None):
            compared = await _compare(service, found, strategy)
            told = accuracy(strategy or "as decided", compared)
            worst = sum((c.estimate.dollars.worst for c in compared), Decimal(0))
            low = sum((c.estimate.dollars.low for c in compared), Decimal(0))
            over += told.over_worst
            print(
                f"| {asked.name} | {told.strategy} | {told.questions} | ${told.estimated_usd:.5f} "
                f"| ${told.actual_usd:.5f} | {told.ratio:.3f} | {told.p5:.2f} | {told.p50:.2f} "
                f"| {told.p95:.2f} | {told.within:.1%} | {float(low / told.actual_usd):.2f} "
                f"| {float(worst / told.actual_usd):.1f} |",
                flush=True,
            )
    print(
        f"{asked.name}: {len(rows) / seconds:.1f} questions/s, every strategy of each", flush=True
    )
    return over


def _sample_lines() -> list[str]:
    return [
        json.dumps(
            {
                "question": question.query.text,
                "form": question.query.form,
                "options": {o.label: o.text for o in question.query.options} or None,
            }
        )
        for question in sample.questions()
    ]


def _pubmedqa_lines(data: Path, count: int) -> list[str]:
    need(data, _PUBMEDQA)
    return [
        json.dumps({"question": row["question"], "form": "yes_no_maybe"})
        for row in rows(data / _PUBMEDQA)[:count]
    ]


async def _all(folder: Path, given: argparse.Namespace) -> int:
    prices = folder / "prices.toml"
    prices.write_text(f'[shadow]\n"offline:extractive" = "{_BILLED_AS}"\n', encoding="utf-8")
    settings = Settings.model_validate({"POSOLOGY_PRICES": str(prices)})
    place = str(folder / "index")
    with sample.notes_file() as notes:
        await to_thread.run_sync(lambda: run_ingest([notes], settings, Target(place=place)))
    print("| questions | strategy | | expected | actual | ratio | p5 | p50 | p95 "
          "| within | low/actual | worst/actual |")  # fmt: skip
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    over = await _run(Asked(name="sample", place=place, lines=_sample_lines()), settings)
    if given.index is None:
        print("PubMedQA: skipped, needs an index of pool.jsonl.gz. Pass --index with its folder.")
        return over
    lines = _pubmedqa_lines(given.data, given.questions)
    pool = Asked(name="PubMedQA", place=str(given.index), lines=lines)
    return over + await _run(pool, settings)


def main(argv: list[str] | None = None) -> int:
    """Estimate, answer, print; the exit status is 1 where something cost more than its worst."""
    parser = argparse.ArgumentParser(prog="evals.money.estimates", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--index", type=Path, help="an index of pool.jsonl.gz")
    parser.add_argument("--questions", type=int, default=100, help="of PubMedQA")
    given = parser.parse_args(argv)
    prepare_libraries()
    with tempfile.TemporaryDirectory() as folder:
        return 1 if anyio.run(_all, Path(folder), given) else 0


if __name__ == "__main__":
    raise SystemExit(main())
