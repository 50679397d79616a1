"""Admission of a tenant's jobs: limits of waiting jobs and of their room in Redis, and the price of a first call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from orchestrator.logs import events
from orchestrator.question.request import JobRequest
from posology.budget.ledger.base import nano
from posology.budget.ledger.refusals import raise_if_not_admitted
from posology.errors import QueueFull
from posology.llm.models.families import tier_of
from posology.seams import Prices
from posology.store import keys
from posology.store.scripts import Scripts
from posology.types import Stage, Tier

#: bytes of a mebibyte
MIB = 1024 * 1024
#: tokens that go into any call, and the bound on those that come out of it where nothing is known of the question
_LEAST = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """Limits of every tenant without limits of its own."""

    #: waiting jobs
    queued: int = 200_000
    #: mebibytes of Redis that jobs and batches occupy until their records expire
    stored: int = 1_024


def raise_if_full(reply: Sequence[str | int], tenant: str) -> None:
    """Raise the error of a submission without room; other replies are ignored.

    Args:
        reply: a word; for a refusal also the limit's name, its value, the present use, what the submission asks for, and
            milliseconds until there may be room.
        tenant: name of the tenant.

    Raises:
        QueueFull: the tenant has too many waiting jobs, or its jobs occupy too much of Redis.
    """
    if reply[0] != "full":
        return
    name, (limit, used, asked, after) = str(reply[1]), map(int, reply[2:6])
    if name == "queued":
        what = f"{used:,} of {limit:,} jobs of {tenant} wait, and this submission has {asked:,}"
        way = "wait for jobs to end, send fewer, or ask for a higher limit"
    else:
        limit, used, asked = (-(-n // MIB) for n in (limit, used, asked))
        what = f"records of {tenant} occupy {used:,} of {limit:,} MiB, and this submission needs {asked:,}"
        way = "wait until old records expire, send less, or ask for a higher limit"
    raise QueueFull(
        f"{what}: {way}",
        limit=name,
        allowed=limit,
        used=used,
        asked=asked,
        retry_after=max(1.0, after / 1000),
    )


class Admission:
    """Checks before anything is stored that a tenant can pay for it.

    Args:
        run: the scripts of jobs.
        prices: of models; ``None``: every model is free.
    """

    def __init__(self, run: Scripts, prices: Prices | None) -> None:
        self._run = run
        self._prices = prices

    async def admit(self, models: Iterable[str], *, tenant: str) -> None:
        """Find out whether a tenant can pay for a call to any of the models.

        Raises:
            BudgetError: for none of them; the error is that of the cheapest which it may use, or else of the
                cheapest.
            StoreUnavailable: Redis is unreachable.
        """
        with events.refusals(tenant=tenant):
            await self._admit(models, tenant)

    async def _admit(self, models: Iterable[str], tenant: str) -> None:
        if self._prices is None:
            return
        refused: tuple[str, Decimal] | None = None
        for least, model in sorted((self.least(model), model) for model in set(models)):
            said = await self._run("admit", keys.prefix(tenant), model, nano(least))
            if said[0] != "model":
                # what does not pay for this one pays for no dearer one
                raise_if_not_admitted(said, model, least, tenant)
                return
            refused = refused or (model, least)
        if refused is not None:
            raise_if_not_admitted(["model"], *refused, tenant)

    def least(self, model: str, *, reply: int = _LEAST, tier: Tier = "standard") -> Decimal:
        """Return the smallest reservation that a call to a model can have, in dollars; 0 without prices.

        Args:
            model: ``provider:name``.
            reply: least bound on the output tokens of a call.
            tier: service tier that it is sent in.

        Raises:
            UnpricedModel: the model has no price.
        """
        if self._prices is None:
            return Decimal(0)
        return self._prices.worst(model, input_tokens=_LEAST, output_tokens=reply, tier=tier)

    def least_of(self, request: JobRequest) -> Decimal:
        """Return the least that a question's first call may be reserved at, in dollars; 0 without prices.

        Raises:
            UnpricedModel: the model has no price in the tier.
        """
        return self.least(
            str(request.model),
            reply=request.max_tokens or _shortest_bound(),
            tier=tier_of(request.tier or "standard"),
        )


def _shortest_bound() -> int:
    """Return the least bound on the reply of a call that a question begins with; the rest of its price needs passages."""
    # the only part of the prompts that is needed, and only here
    from prompts.lengths import REPLY_TOKENS

    return min(
        bounds[stage] for bounds in REPLY_TOKENS.values() for stage in (Stage.ANSWER, Stage.EXTRACT)
    )
