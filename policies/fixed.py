"""The policy that a user forces: always the same dose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from posology.types import Decision, Dose, Situation

NAME = "fixed"
_DIRECT = Dose(strategy="direct")


@dataclass(frozen=True, kw_only=True, slots=True)
class Fixed:
    """Names one dose whatever the situation."""

    dose: Dose = _DIRECT

    @property
    def parts(self) -> Mapping[str, str]:
        """It has none."""
        return {}

    @property
    def version(self) -> str:
        """It has settings alone, and they are in each decision."""
        return "1"

    def __call__(self, situation: Situation) -> Decision:
        """Decide; what was retrieved goes into the record, since another policy would look at it."""
        return self._decision(
            {
                "passages": len(situation.retrieval.passages),
                "sentences": sum(len(p.sentences) for p in situation.retrieval.passages),
            }
        )

    def again(self, record: Decision) -> Decision:
        """Decide as for that record."""
        return self._decision(dict(record.features))

    def _decision(self, features: dict[str, object]) -> Decision:
        return Decision(
            dose=self.dose,
            policy=NAME,
            reason=f"{self.dose.strategy} was asked for",
            features=features,
        )
