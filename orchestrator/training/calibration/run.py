"""A calibration: retrieve every question, observe preflight's features, learn, and describe."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from orchestrator.question.embedding import Spend
from orchestrator.service import Service
from orchestrator.training.calibration.forms import CalibrationOutput, OrderOutput
from orchestrator.training.calibration.learning import (
    Case,
    Learned,
    disagrees,
    held_ranking,
    learn,
)
from orchestrator.training.calibration.rows import Begin, Observed, RunFile
from orchestrator.training.qtable.questions import Example, Examples
from policies.calibration import Calibration, packaged
from policies.preflight_features import SPOTLIGHT, observe
from posology.concurrency import map_concurrently
from posology.errors import InputError
from posology.types import Mode, Retrieval

#: concurrent retrievals
_AT_ONCE = 4
#: reasons for questions without a case
NO_GOLD = "the question has no gold passages, and others do"
FEW = f"the index has no more than {SPOTLIGHT} passages for this question"


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """Questions of a calibration, and how they are retrieved."""

    examples: Examples
    k: int
    mode: Mode
    #: expected share of issues without gold passages, 0 to 1
    rate: float

    @property
    def labelled(self) -> bool:
        """Whether gold passages are known."""
        return any(one.gold for one in self.examples.good)

    @property
    def asked(self) -> tuple[Example, ...]:
        """Questions that teach: those with gold passages, or all if none has any."""
        return tuple(one for one in self.examples.good if one.gold or not self.labelled)


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """Result of a calibration."""

    order: str
    calibration: Calibration
    #: questions retrieved now
    retrieved: int
    #: reason for each line without a case
    left_out: Mapping[int, str]


async def calibrate(
    wanted: Wanted,
    file: RunFile,
    service: Service,
    spend: Spend,
    *,
    before: Calibration | None,
    tick: Callable[[int], None],
) -> Made:
    """Retrieve what the run's file lacks, and learn the order.

    Args:
        wanted: the questions.
        file: keeps every question's features.
        service: retrieves.
        spend: pays for vectors of a paid embedder.
        before: calibration whose other orders are kept; ``None``: there is none.
        tick: called with 1 for each retrieved question.

    Raises:
        InputError: too few questions, or ``before`` is of another embedder.
        BudgetError: the tenant's limits do not allow a vector.
    """
    embedder = service.index.meta.embedder
    if before is not None and before.embedder != embedder:
        raise InputError(
            f"the file holds a calibration of {before.embedder}, but the index was made with {embedder}: choose another "
            "file with --out"
        )
    order, index = service.order(wanted.mode), service.index.version
    file.write(Begin(started=datetime.now(UTC).isoformat(timespec="seconds"), embedder=embedder))
    held = None if wanted.labelled else held_ranking(order)
    todo = [
        one
        for one in wanted.asked
        if (row := file.content.observed.get((_digest(one), order, wanted.k))) is None
        or row.index != index
    ]

    async def work(example: Example) -> None:
        found = await service.search(example.query, k=wanted.k, mode=wanted.mode, spend=spend)
        file.write(_observed(example, found, wanted.k, held))
        tick(1)

    await map_concurrently(work, todo, limit=_AT_ONCE)
    rows, left_out = [], {bad.line: bad.reason for bad in wanted.examples.bad}
    left_out |= {one.line: NO_GOLD for one in wanted.examples.good if one not in wanted.asked}
    for example in wanted.asked:
        row = file.content.observed[_digest(example), order, wanted.k]
        if int(row.features["preflight.passages"]) <= SPOTLIGHT:
            left_out[example.line] = FEW
    asked = {_digest(one) for one in wanted.asked if one.line not in left_out}
    rows = [
        row
        for (digest, of, _), row in file.content.observed.items()
        # those of another --k may be of an earlier index
        if of == order and digest in asked and row.held == held and row.index == index
    ]
    learned = learn([_case(row) for row in rows], order, held, wanted.rate)
    return Made(
        order=order,
        calibration=_merged(before, embedder, order, learned, index, rows),
        retrieved=len(todo),
        left_out=left_out,
    )


def _digest(example: Example) -> str:
    content = json.dumps([example.digest, sorted(example.gold)])
    return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


def _observed(example: Example, retrieval: Retrieval, k: int, held: str | None) -> Observed:
    shown = [one.passage.id for one in retrieval.passages]
    absent = None if held is not None else not example.gold & set(shown)
    issue = (
        disagrees(retrieval, held)
        if held is not None
        else not example.gold & set(shown[:SPOTLIGHT])
    )
    return Observed(
        digest=_digest(example),
        order=retrieval.order or "",
        k=k,
        index=retrieval.index_version,
        held=held,
        issue=issue,
        absent=absent,
        features=observe(retrieval),
    )


def _case(row: Observed) -> Case:
    return Case(question=row.digest, features=row.features, issue=row.issue, absent=row.absent)


def _merged(
    before: Calibration | None,
    embedder: str,
    order: str,
    learned: Learned,
    index: str,
    rows: Sequence[Observed],
) -> Calibration:
    """Return the calibration with the learned order in place of an earlier one."""
    models = {} if before is None else dict(before.models)
    orders = {} if before is None else dict(before.trained.get("orders", {}))
    digests = json.dumps(sorted({row.digest for row in rows}))
    facts: dict[str, Any] = {
        "questions": learned.questions,
        "rate": learned.rate,
        "held": learned.held,
        "passages": sorted({row.k for row in rows}),
        "digest": hashlib.blake2b(digests.encode(), digest_size=8).hexdigest(),
        "index": index,
        "reach": [asdict(one) for one in learned.reach],
    }
    return Calibration(
        models={**models, order: learned.model},
        trained={"embedder": embedder, "orders": {**orders, order: facts}},
    )


def describe(calibration: Calibration, at_once: float | None) -> CalibrationOutput:
    """Return the published form of a calibration.

    Args:
        calibration: the calibration.
        at_once: least probability at which the configured policy gives BriefContext at once; ``None``: never.
    """
    orders = calibration.trained.get("orders", {})
    return CalibrationOutput(
        digest=calibration.version,
        embedder=calibration.embedder,
        packaged=calibration.version == packaged().version,
        at_once=at_once,
        orders=tuple(
            OrderOutput(
                order=order,
                threshold=model.threshold,
                questions=(facts := orders.get(order, {})).get("questions"),
                held=facts.get("held"),
                rate=facts.get("rate"),
                reach=tuple(facts.get("reach", ())),
            )
            for order, model in calibration.models.items()
        ),
    )
