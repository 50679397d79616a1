"""Users' feedback on answers, and the rewards that it gives to a Q-table."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, cast

from orchestrator.question.request import FeedbackRequest
from posology.errors import JobNotFound, JobNotSucceeded
from posology.published.jobs import JobOutput
from posology.store import keys
from posology.store.connection import translated
from posology.store.keys import DEFAULT_TENANT
from posology.types import JobState
from strategies import STRATEGIES

if TYPE_CHECKING:
    from orchestrator.jobs.store import JobStore
    from posology.published.answers import AskOutput
    from posology.published.decisions import DecisionOutput

#: shares and scores are kept as so many parts of 1: whole numbers add up exactly, and can be taken back
WHOLE = 1_000_000
_DIGEST = re.compile(r"[0-9a-f]{1,64}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """Reward of one answer: an action in a state of a Q-table, with its score."""

    #: digest of the table that decided
    table: str
    state: int
    #: share of the sentences that was kept whole, millionths
    keep: int
    #: of the answer, millionths
    score: int
    #: τ, share of the words of all that was retrieved that was shown, millionths
    shown: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Summed:
    """All that came to one action in one state."""

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
    """A copy of a Q-table: what it has learned from a tenant's feedback since it was made."""

    #: with at least one reward each, in order of state and share
    cells: tuple[Summed, ...]


def cell_of(decision: DecisionOutput, result: AskOutput, score: float) -> Cell | None:
    """Return the reward of an answer for the Q-table of its decision.

    Nothing where there was none, where another strategy answered than was first decided on, where not all
    of the passages were to be read, or where it is not known how much was shown. Without a ladder, an
    answer that does not say how much was shown was shown the share that was asked for.

    Args:
        decision: the job's.
        result: its answer or refusal.
        score: of it, 0 to 1.
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
    store: JobStore, job: str, said: FeedbackRequest, *, tenant: str = DEFAULT_TENANT
) -> JobOutput:
    """Keep what a user says of an answer; said again, it takes the place of what was said before.

    Args:
        store: of jobs.
        job: its id.
        said: of its answer.
        tenant: whose job it is.

    Raises:
        JobNotFound: the tenant has no such job (any more).
        JobNotSucceeded: there is no answer to judge.
        StoreUnavailable: Redis is out of reach.
    """
    found = await store.get(job, tenant=tenant)
    if found.state is not JobState.SUCCEEDED:
        raise JobNotSucceeded(
            f"job {job} is {found.state}: only the answer of a job that has succeeded can be judged",
            job=job,
        )
    # from here on it does not change any more: it can only be forgotten
    cell = None
    if found.decision is not None and found.result is not None:
        cell = cell_of(found.decision, found.result, said.score)
    word = await store.run(
        "feedback",
        keys.prefix(tenant),
        job,
        said.model_dump_json(),
        json.dumps(asdict(cell)) if cell else "",
    )
    if word == "gone":
        raise JobNotFound(f"there is no job {job} (any more)", job=job)
    return await store.get(job, tenant=tenant)


async def collect(store: JobStore, table: str, *, tenant: str = DEFAULT_TENANT) -> Collected:
    """Collect a tenant's feedback on a Q-table.

    Args:
        store: of jobs.
        table: its digest.
        tenant: whose.

    Raises:
        StoreUnavailable: Redis is out of reach.
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
