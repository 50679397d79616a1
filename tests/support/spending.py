"""Money that is spent without a model."""

from __future__ import annotations

from decimal import Decimal

from posology.types import Attempt, Opening, Outcome, PromptId, Reservation, Stage

PROMPT = PromptId(name="answer", digest="0" * 16)


def reservation(
    bound: Decimal, *, model: str = "openai:gpt-4o-mini", own: str = "a1"
) -> Reservation:
    opening = Opening(
        id=own,
        call=None,
        attempt=1,
        stage=Stage.ANSWER,
        model=model,
        prompt=PROMPT,
        key="k",
        started=1.0,
        reserved=bound,
    )
    return Reservation(opening=opening, call=1, job="run_1", ticket=f"run_1|{own}")


def settled(asked: Reservation, cost: Decimal) -> Attempt:
    return Attempt.of(
        asked.opening,
        call=1,
        outcome=Outcome.OK,
        error=None,
        usage=None,
        cost=cost,
        latency=0.5,
        request_id=None,
    )
