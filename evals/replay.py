"""Checks that ``policy replay`` repeats the decisions of 500 jobs from their records.

Usage: ``python -m evals.replay [--data PATH] [--jobs N]``.

Questions of SQuAD are asked of all of its pooled paragraphs, as a batch in a Redis of its own: by every policy and
by forced strategies, of 1 to 16 passages, without a limit and with caps from ample to almost nothing. Runners
retrieve, decide and record as workers do. In place of a model stands one that refuses a third of the questions in
one call, so that ladders are climbed and left: nothing depends on what an answer says. The Q-table's centroids are
those of some questions, its values are drawn.

Then the command decides again in a process of its own: from the records alone; from what it retrieves again, which
has to be the same, too; and without the Q-table, which it has to notice. Fails if one decision is another.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import numpy as np

from evals.pooled import SHADOW, Pool, Question, open_pool
from orchestrator.connections import Connections
from orchestrator.environment import prepare_libraries
from orchestrator.jobs.batches import Batches
from orchestrator.jobs.store import JobStore, open_store
from orchestrator.models import Models
from orchestrator.question import qtables
from orchestrator.question.pipeline import Pipeline
from orchestrator.service import Service, make_service
from orchestrator.settings import Settings
from orchestrator.stack.redis_server import find_server
from policies.qtable import ACTIONS, QTable, state_vector
from policies.specs import POLICIES
from posology.errors import DecisionChanged
from posology.published.jobs import JobOutput
from posology.store import keys
from posology.types import Call, Completion, Finish, Stage, Usage
from prompts.answer import AnswerReply, Quote
from prompts.extract import ExtractReply, Statement
from prompts.reduce import ReduceReply
from training.gold import WORK
from workers.engine.claims import WorkStore
from workers.engine.runner import Runner
from workers.engine.units import Unit

MODEL = "offline:extractive"
#: jobs that a runner works on at once
AT_ONCE = 8
#: one in so many questions is refused where it is asked in one call
REFUSED = 3
STATES = 8
ASKED = (
    *POLICIES,
    "router:preflight=calibrated",
    "router:preflight=off",
    "router:start=1,factor=3",
    "router:overlapping=off,rounds=2",
    "router:escalate=off,keep=0.3",
    "qtable:doubling=on",
    "affordable:keep=0.4",
)
FORCED: Sequence[dict[str, Any]] = (
    {"strategy": "direct"},
    {"strategy": "compressed", "keep": 0.2},
    {"strategy": "briefcontext"},
)
#: dollars, from and to: the cheapest dose costs four tenths of a cent at worst, the dearest some ten cents
CAPS = (0.002, 0.2)


class Decided:
    """A :class:`~posology.seams.Send` that quotes the first sentence, or refuses."""

    async def __call__(self, call: Call, *, attempt_id: str | None = None) -> Completion:  # noqa: ARG002
        """Reply to one call."""
        first = call.excerpts[0]
        quote = Quote(passage="P1", quote=first.sentences[0].of(first.passage.text))
        refused = zlib.crc32(call.query.text.encode()) % REFUSED == 0
        reply: AnswerReply | ExtractReply | ReduceReply
        match call.stage:
            case Stage.EXTRACT:
                said = Statement(statement=quote.quote, quotes=[quote])
                reply = ExtractReply(found=True, findings=[said])
            case Stage.REDUCE:
                reply = ReduceReply(
                    answerable=True, answer="It is.", choice=None, evidence=["F1"], claims=[]
                )
            case _:
                reply = AnswerReply(
                    answerable=not refused,
                    answer="It is not said." if refused else "It is.",
                    choice=None,
                    quotes=[] if refused else [quote],
                )
        return Completion(
            text=reply.model_dump_json(),
            usage=Usage(input=100, output=10),
            finish=Finish.STOP,
            served_model="decided",
        )


@contextmanager
def a_redis(folder: Path) -> Iterator[str]:
    """The address of a Redis that keeps nothing."""
    socket = folder / "redis.sock"
    command = [str(find_server(os.environ.get("PATH"))), "--port", "0", "--unixsocket", str(socket),
               "--dir", str(folder), "--save", "", "--appendonly", "no"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            while not socket.exists():
                time.sleep(0.02)
            yield f"unix://{socket}"
        finally:
            process.terminate()


def _rows(questions: Sequence[Question], seed: int) -> list[str]:
    """A question a row, each asked in a way that is drawn."""
    drawn = random.Random(seed)
    rows = []
    for question in questions:
        row: dict[str, Any] = {"question": question.text, "k": drawn.choice((1, 3, 8, 16))}
        forced = drawn.random() < 0.15
        row |= drawn.choice(FORCED) if forced else {"policy": drawn.choice(ASKED)}
        if not forced and drawn.random() < 0.7:
            low, high = (np.log(cap) for cap in CAPS)
            row["max_cost_usd"] = f"{np.exp(drawn.uniform(low, high)):.6f}"
        rows.append(json.dumps(row))
    return rows


async def _table(pool: Pool, questions: Sequence[Question], seed: int) -> QTable:
    found = [state_vector(await pool.retrieve(q, 8), "difference") for q in questions[:STATES]]
    values = np.random.default_rng(seed).uniform(-1, 1, (STATES, len(ACTIONS)))
    return QTable(
        kind="difference",
        centroids=np.stack(found),
        actions=ACTIONS,
        q=values,
        visits=np.full(values.shape, 9, np.int64),
        alpha=0.5,
        embedder=pool.embedder.name,
        compressor="leancontext",
        model=MODEL,
        k=8,
        prompts={},
        data="drawn",
        least_visits=5,
        fallback=1.0,
        created=datetime.now(UTC),
    )


async def _work_off(
    store: JobStore, tenant: str, service: Service, connections: Connections
) -> None:
    """Do as workers do, until nothing waits."""

    async def ready() -> Pipeline:
        return service.pipeline

    work = WorkStore(store, worker=keys.worker(1))
    runner = Runner(work, connections, ready)
    units: list[Unit] = []
    while True:
        while len(units) < AT_ONCE and (unit := await work.take(tenant)) is not None:
            units.append(unit)
        if not units:
            return
        units = await runner.run_all(units)


async def _record(settings: Settings, rows: Sequence[str]) -> str:
    """Answer a batch; returns its id."""
    models = Models(None)
    connections = Connections(settings, offline=Decided)
    service = await make_service(settings, models, connections)
    async with open_store(settings.redis, prices=connections.prices) as store:
        batches = Batches(store, settings)
        batch = (await batches.submit(rows, tenant=settings.tenant)).id
        await _work_off(store, settings.tenant, service, connections)
        jobs: list[JobOutput] = []
        after = -1
        while page := await batches.rows(batch, tenant=settings.tenant, after=after):
            jobs += [await store.get(str(row.job), tenant=settings.tenant) for row in page]
            after = page[-1].row
    _tell(jobs)
    await connections.aclose()
    return batch


def _tell(jobs: Sequence[JobOutput]) -> None:
    states = Counter(str(job.state) for job in jobs)
    print("jobs:", ", ".join(f"{state} {count}" for state, count in states.most_common()))
    doses: Counter[str] = Counter()
    for job in jobs:
        decision = job.decision
        if decision is None:
            doses["none"] += 1
            continue
        stepped = len(decision.offers) > 1 and decision.strategy != "decline"
        said = decision.strategy + (", a ladder" if decision.dose.rungs else "")
        said += ", stepped down" if stepped else ""
        doses[said + (f", then {decision.then.strategy}" if decision.then else "")] += 1
    for said, count in doses.most_common():
        print(f"  {count:4}  {said}")
    for error in {job.error.type for job in jobs if job.error is not None}:
        print(f"  failed: {error}")


def _replay(environment: dict[str, str], batch: str, *options: str) -> tuple[int, dict[str, Any]]:
    """The command in a process of its own."""
    command = [sys.executable, "-c", "from orchestrator.cli.app import main; main()", "policy",
               "replay", "--batch", batch, "--json", *options]  # fmt: skip
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if not done.stdout:
        sys.exit(done.stderr)
    return done.returncode, json.loads(done.stdout)


def _check(title: str, found: tuple[int, dict[str, Any]], jobs: int) -> bool:
    code, out = found
    same = out["counts"].get("same", 0)
    print(
        f"{title}: {same} of {out['jobs']} jobs the same, {out['decisions']} decisions, "
        f"exit status {code}, {out['seconds']:.1f} s"
    )
    for job in out["found"][:3]:
        print(json.dumps(job)[:600])
    return code == 0 and same == out["jobs"] == jobs


def main() -> None:
    """Print the figures; the exit status is 1 where one decision is another."""
    parser = argparse.ArgumentParser(prog="evals.replay", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the data sets")
    parser.add_argument("--work", type=Path, default=WORK, help="where the index is kept")
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    prepare_libraries()
    pool = open_pool(given.data, given.work)
    asked = [question for row in pool.questions for question in row[:1]]
    random.Random(given.seed).shuffle(asked)
    with tempfile.TemporaryDirectory() as temporary, a_redis(Path(temporary)) as url:
        folder = Path(temporary)
        qtables.save(anyio.run(_table, pool, asked, given.seed), folder / "t.json")
        (folder / "prices.toml").write_text(f'[shadow]\n"{MODEL}" = "{SHADOW}"\n', "utf-8")
        said = {
            "POSOLOGY_REDIS_URL": url,
            "POSOLOGY_INDEX": str(pool.index.uri),
            "POSOLOGY_PRICES": str(folder / "prices.toml"),
            "POSOLOGY_QTABLE": str(folder / "t.json"),
        }
        started = time.perf_counter()
        rows = _rows(asked[: given.jobs], given.seed)
        batch = anyio.run(_record, Settings.model_validate(said), rows)
        print(f"decided and recorded in {time.perf_counter() - started:.1f} s", flush=True)
        environment = dict(os.environ) | said
        alike = _check("from the records", _replay(environment, batch), len(rows))
        again = _replay(environment, batch, "--retrieve")
        alike &= _check("retrieved again", again, len(rows))
        del environment["POSOLOGY_QTABLE"]
        code, out = _replay(environment, batch)
        print(
            f"without the Q-table: {out['counts']}, versions {out['versions']}, exit status {code}"
        )
    if not alike or code != DecisionChanged.exit_code:
        sys.exit("a decision is another one, or a change was not noticed")


if __name__ == "__main__":
    main()
