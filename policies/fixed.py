"""The policy that a user forces: always the same strategy."""

from __future__ import annotations

from dataclasses import dataclass

from posology.types import Decision, Situation

NAME = "fixed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Fixed:
    """Names one strategy whatever the situation."""

    strategy: str = "direct"

    def __call__(self, situation: Situation) -> Decision:
        """Decide; what was retrieved goes into the record, since a later policy would look at it."""
        retrieval = situation.retrieval
        return Decision(
            strategy=self.strategy,
            policy=NAME,
            reason=f"{self.strategy} was asked for",
            features={
                "passages": len(retrieval.passages),
                "sentences": sum(len(p.sentences) for p in retrieval.passages),
                "index": retrieval.index_version,
            },
        )
