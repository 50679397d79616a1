"""Judgements of answers, and rewards for Q-tables."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, cast

from orchestrator.jobs.records import WHOLE
from orchestrator.jobs.store import JobStore
from orchestrator.question.sent import FeedbackRequest
from posology.errors import JobNotFound, JobNotSucceeded
from posology.published.jobs import JobOutput
from posology.store import keys
from posology.store.connection import translated
from posology.store.keys import DEFAULT_TENANT
from posology.types import JobState
from strategies import STRATEGIES

if TYPE_CHECKING:
    from posology.published.answers import AskOutput
    from posology.published.decisions import DecisionOutput

_DIGEST = re.compile(r"[0-9a-f]{1,64}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """Reward from one answer: an action in a state of a Q-table, and its score."""

    #: digest of the Q-table that decided
    table: str
    state: int
    #: share of sentences kept whole, millionths
    keep: int
    #: score of the answer, millionths
    score: int
    #: τ, share of the words of all retrieved text that was shown, millionths
    shown: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Summed:
    """Sum of the rewards of one action in one state."""

    state: int
    #: millionths
    keep: int
    count: int
    #: sum, millionths
    score: int
    #: sum, millionths
    shown: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Collected:
    """A copy of a Q-table: all that it learned from a tenant's feedback."""

    #: cells with at least one reward, ordered by state and share
    cells: tuple[Summed, ...]


def cell_of(decision: DecisionOutput, result: AskOutput, score: float) -> Cell | None:
    """Return the reward of an answer for the Q-table that chose its dose.

    ``None`` without a Q-table, if another strategy answered than was first chosen, if not all passages were
    to be read, or if the shown share is unknown. Without a ladder, an unknown shown share is the requested
    share.

    Args:
        decision: decision of the job.
        result: its answer or refusal.
        score: score of the answer, 0 to 1.
    """
    dose, features = decision.dose, decision.features
    table, state = features.get("qtable.table"), features.get("qtable.state")
    if not (isinstance(table, str) and _DIGEST.fullmatch(table) and type(state) is int):
        return None
    if decision.then is not None or dose.passages is not None or result.strategy != dose.strategy:
        return None
    entry = STRATEGIES.get(dose.strategy)
    if entry is None:
        return None
    keep = dose.keep if entry.takes_compressor else entry.share
    if keep is None:
        return None
    shown = result.shown
    if shown is None and not dose.rungs:
        shown = keep
    if shown is None:
        return None
    return Cell(
        table=table,
        state=state,
        keep=round(keep * WHOLE),
        score=round(score * WHOLE),
        shown=round(shown * WHOLE),
    )


async def give(
    store: JobStore, job: str, judgement: FeedbackRequest, *, tenant: str = DEFAULT_TENANT
) -> JobOutput:
    """Store a judgement of an answer; it replaces an earlier one.

    Args:
        store: the job store.
        job: id of the job.
        judgement: of the answer.
        tenant: tenant of the job.

    Raises:
        JobNotFound: the tenant has no such job, or its record has expired.
        JobNotSucceeded: there is no answer to judge.
        StoreUnavailable: Redis is unreachable.
    """
    found = await store.get(job, tenant=tenant)
    if found.state is not JobState.SUCCEEDED:
        raise JobNotSucceeded(
            f"job {job} is {found.state}: only answers of jobs that have succeeded can be judged",
            job=job,
        )
    # the record no longer changes; it can only expire
    cell = None
    if found.decision is not None and found.result is not None:
        cell = cell_of(found.decision, found.result, judgement.score)
    word = await store.run(
        "feedback",
        keys.prefix(tenant),
        job,
        judgement.model_dump_json(),
        json.dumps(asdict(cell)) if cell else "",
    )
    if word == "gone":
        raise JobNotFound(f"there is no job {job}, or its record has expired", job=job)
    return await store.get(job, tenant=tenant)


async def collect(store: JobStore, table: str, *, tenant: str = DEFAULT_TENANT) -> Collected:
    """Return the rewards that a tenant's feedback gave a Q-table.

    Args:
        store: the job store.
        table: digest of the table.
        tenant: name of the tenant.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """
    name = f"{keys.prefix(tenant)}qtable:{table}"
    with translated(store.url):
        raw = await cast("Awaitable[dict[str, str]]", store.redis.hgetall(name))
    sums: dict[tuple[int, int], dict[str, int]] = {}
    for field, value in raw.items():
        state, keep, what = field.split(":")
        sums.setdefault((int(state), int(keep)), {})[what] = int(value)
    return Collected(
        cells=tuple(
            Summed(state=state, keep=keep, **found)
            for (state, keep), found in sorted(sums.items())
            if found["count"] > 0
        )
    )
