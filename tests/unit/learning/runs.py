"""Runs that were explored, put together by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

import numpy as np

from orchestrator.training.qtable.plan import packed
from orchestrator.training.qtable.rows import Arm, Asked, Begin, Explored, Replied


def begin(model: str = "openai:x") -> Begin:
    return Begin(
        started="2026-01-01T00:00:00+00:00",
        model=model,
        k=8,
        mode="fused",
        compressor="leancontext",
        embedder="hash-2",
        index="index@1",
        prompts={"answer": "0" * 16},
    )


def asked(
    name: str,
    calls: Mapping[float, str | None],
    *,
    tokens: Mapping[float, int] | None = None,
    vectors: Sequence[float] = (1, 0, 0, 1),
    references: tuple[str, ...] = (),
    line: int = 1,
) -> Asked:
    """Of 100 tokens; each action shows its share of them unless it is said how many."""
    shown = tokens or {keep: round(100 * keep) for keep in calls}
    return Asked(
        digest=name,
        line=line,
        choices=(),
        references=references,
        vectors=packed(np.array(vectors, np.float32)),
        tokens=100,
        arms=tuple(Arm(keep=k, call=call, tokens=shown[k]) for k, call in calls.items()),
    )


def replied(call: str, text: str, *, refused: bool = False, cost: str = "0.25") -> Replied:
    return Replied(call=call, text=text, choice=None, refused=refused, cost=Decimal(cost))


def explored(*rows: Begin | Asked | Replied) -> Explored:
    found = Explored()
    for row in rows:
        found.add(row)
    return found
