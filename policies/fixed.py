"""The policy of a forced strategy: always the same dose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from posology.types import Decision, Dose, Situation

NAME = "fixed"
_DIRECT = Dose(strategy="direct")


@dataclass(frozen=True, kw_only=True, slots=True)
class Fixed:
    """Gives one dose in every situation."""

    dose: Dose = _DIRECT

    @property
    def parts(self) -> Mapping[str, str]:
        """Empty: it has no parts."""
        return {}

    @property
    def version(self) -> str:
        """Constant: its settings are in each decision."""
        return "1"

    def __call__(self, situation: Situation) -> Decision:
        """Decide; the record has features that another policy would look at."""
        return self._decision(
            {
                "passages": len(situation.retrieval.passages),
                "sentences": sum(len(p.sentences) for p in situation.retrieval.passages),
            }
        )

    def replay(self, record: Decision) -> Decision:
        """Decide as in a record."""
        return self._decision(dict(record.features))

    def _decision(self, features: dict[str, object]) -> Decision:
        return Decision(
            dose=self.dose,
            policy=NAME,
            reason=f"{self.dose.strategy} was asked for",
            features=features,
        )
