"""The router: preflight, Q-table, doubling and what is affordable, one after the other.

Each part may be left out, so that every policy with a name is this one with other parts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from policies import affordable, preflight, qtable
from policies import savings as saving
from policies.affordable import Quote, afford, describe, whole
from policies.doubling import Doubling
from policies.preflight import Prediction, Predictor
from policies.qtable import QTable
from posology.errors import InvalidRecord
from posology.types import Decision, Dose, Situation

#: Shares that are tried where money allows no more, the largest that is paid for is kept. From the most that
#: LeanContext's actions keep (section "Action") by halves, as passages are halved, to a tenth: of a twentieth the
#: pruner leaves .657 of SciFact's rationales instead of .769, and ranking by vectors .340 instead of .487
#: (``python -m evals.compressors``)
STEP_DOWN = (0.4, 0.2, 0.1)
#: bytes of a version
_VERSION = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Router:
    """Decides by its parts; without any, direct RAG over all passages, or what the money pays for."""

    #: as it was asked for, e.g. ``router:preflight=published``
    name: str = "router"
    #: ``None``: no question is given to BriefContext for where its passages stand
    preflight: Predictor | None = None
    #: ``None``: ``keep`` for all questions
    table: QTable | None = None
    #: ``None``: one call shows all
    doubling: Doubling | None = None
    #: share that is kept without a table; 1: direct RAG; ``None``: as much as the compressor finds right
    keep: float | None = 1.0
    #: name of the compressor that is asked for; ``None``: the table's, or the configured one
    compressor: str | None = None
    #: whether a compressor is skipped that costs more than it saves
    saving: bool = True
    #: Probability of the issue from which on BriefContext is given at once. Below it, a question that preflight
    #: flags has all passages in one call, where others begin with a few. A predictor without probabilities
    #: is taken at its word
    issue: float = 0.0
    #: shares that are tried where money allows no more, falling; empty: only what is kept anyway
    step_down: tuple[float, ...] = STEP_DOWN
    #: whether BriefContext reads all passages when a ladder was refused to the last
    escalate: bool = True
    #: name of the one whose vectors were compared; ``None``: not known. It goes into the record
    embedder: str | None = None
    #: name of the configured compressor; ``None``: not known. It goes into the record
    configured: str | None = None

    @property
    def parts(self) -> Mapping[str, str]:
        """See :class:`~posology.seams.Policy`."""
        shares = "/".join(map(repr, self.step_down)) or "off"
        found = {
            "settings": f"keep {self.keep!r}, escalate {self.escalate}, issue {self.issue!r}, step down {shares}",
            "affordable": affordable.VERSION,
        }
        if self.compressor is not None:
            found["compressor"] = self.compressor
        if self.saving:
            found["saving"] = saving.VERSION
        if self.preflight is not None:
            found["preflight"] = f"{self.preflight.name} {self.preflight.version}"
        if self.table is not None:
            found["qtable"] = self.table.digest
        if self.doubling is not None:
            found["doubling"] = self.doubling.version
        return found

    @property
    def version(self) -> str:
        """Of its parts and settings."""
        said = "\0".join(f"{name} {version}" for name, version in sorted(self.parts.items()))
        return hashlib.blake2b(said.encode(), digest_size=_VERSION).hexdigest()

    def __call__(self, situation: Situation) -> Decision:
        """Decide.

        Raises:
            PolicyMismatch: the Q-table is of another embedder.
        """
        retrieval = situation.retrieval
        features: dict[str, Any] = {
            "passages": len(retrieval.passages),
            "sentences": sum(len(p.sentences) for p in retrieval.passages),
            "tried": max((rung.first + rung.passages for rung in situation.tried), default=0),
            "embedder": self.embedder,
            "compressor": self.configured,
        }
        if self.preflight is not None and retrieval.passages:
            features |= preflight.observe(retrieval)
        if self.table is not None and retrieval.passages and self._learned:
            features |= qtable.observe(self.table, retrieval)
        if self.saving and situation.saving is not None:
            dose, _ = self._wanted(features, _number(features, "passages"))
            if dose.strategy == "compressed":
                features |= saving.observe(situation.saving(dose))
        return self._decide(features, situation.remaining, situation.quote)

    def again(self, record: Decision) -> Decision:
        """Decide from the features, the money and the prices of a record.

        Raises:
            InvalidRecord: it is not enough to decide by.
            PolicyMismatch: it is of another Q-table.
        """
        return self._decide(dict(record.features), record.remaining, recorded_quote(record))

    def _decide(
        self, features: dict[str, Any], remaining: Decimal | None, quote: Quote | None
    ) -> Decision:
        passages = _number(features, "passages")
        wanted, steps = self._wanted(features, passages)
        reason = steps[-1]
        # what a compressor that does not pay would have given
        skipped: Dose | None = None
        weighed = saving.recorded(features) if self.saving else None
        if weighed is not None and wanted.strategy == "compressed":
            verdict = saving.weigh(weighed)
            steps.append(f"Saving: {verdict.reason}")
            if not verdict.pays:
                skipped, reason = wanted, steps[-1]
                wanted = whole(wanted)
        decision = Decision(
            dose=wanted, policy=self.name, reason=reason, features=features, steps=tuple(steps)
        )
        if remaining is None or quote is None or not passages:
            return replace(decision, remaining=remaining)
        found = afford(
            wanted,
            remaining=remaining,
            quote=quote,
            passages=passages,
            compressed=self._smaller(features, wanted, skipped),
            # a smaller dose than the one that was refused would be refused, too
            alternatives=not features["tried"],
        )
        return replace(
            decision,
            dose=found.dose,
            reason=decision.reason if found.dose == wanted else found.reason,
            steps=(*steps, f"Money: {found.reason}"),
            remaining=remaining,
            offers=found.offers,
        )

    def _wanted(self, features: Mapping[str, Any], passages: int) -> tuple[Dose, list[str]]:
        """The dose for a question if money were no object, and how it came about."""
        steps: list[str] = []
        suspect = False
        if not passages:
            return Dose(strategy="direct"), ["Nothing was retrieved: there is nothing to decide."]
        tried = _number(features, "tried")
        if tried:
            steps.append(
                f"Doubling: {tried} of {passages} passages were read, and the reply was a refusal to "
                "the last: BriefContext over all."
            )
            return Dose(strategy="briefcontext"), steps
        if self.preflight is not None:
            predicted = self.preflight(features)
            steps.append(f"Preflight ({self.preflight.name}): {predicted.reason}")
            # of so few passages none stands in the middle, whatever longer rankings say
            suspect = predicted.issue and passages > preflight.SPOTLIGHT
            if suspect and self._sure(predicted):
                return Dose(strategy="briefcontext"), steps
        dose = self._kept(features, steps)
        if self.doubling is not None:
            # of so few passages none stands in the middle: BriefContext would ask the same again
            escalate = self.escalate and passages > preflight.SPOTLIGHT
            dose = replace(
                dose,
                # few passages would miss what is likely to stand beyond the first
                rungs=(passages,) if suspect else self.doubling.rungs(passages),
                overlapping=self.doubling.overlapping,
                escalate=escalate,
            )
            steps.append(_told(dose, suspect=suspect, sure=self.issue))
        if not steps:
            steps.append(f"{describe(dose)} is what this policy gives.")
        return dose, steps

    def _sure(self, predicted: Prediction) -> bool:
        """Whether the issue is likely enough for BriefContext to be worth its price."""
        return predicted.probability is None or predicted.probability >= self.issue

    @property
    def _learned(self) -> bool:
        """Whether the table learned with the compressor that is asked for, where one is."""
        assert self.table is not None
        return self.compressor in (None, self.table.compressor)

    def _kept(self, features: Mapping[str, Any], steps: list[str]) -> Dose:
        """Direct RAG, or compressed RAG with a share and a compressor; a table's step is added."""
        keep, compressor = self.keep, self.compressor
        if self.table is not None:
            # its shares say nothing of what another compressor leaves of them
            if self._learned:
                choice = qtable.choose(self.table, features)
                keep, compressor = choice.keep, self._of_table(features)
                by = (
                    ""
                    if compressor is None or self.compressor
                    else f", by {compressor}, as it learned"
                )
                steps.append(f"Q-table: {choice.reason}{by}")
            else:
                steps.append(
                    f"Q-table: it learned what {self.table.compressor} leaves, and {self.compressor} is asked "
                    "for: its shares are not used."
                )
        if keep is not None and keep >= 1:
            return Dose(strategy="direct")
        return Dose(strategy="compressed", keep=keep, compressor=compressor)

    def _of_table(self, features: Mapping[str, Any]) -> str | None:
        """The compressor that the table learned with; ``None``: the configured one, which it is."""
        assert self.table is not None
        if self.compressor is not None:
            return self.compressor
        configured = features.get("compressor")
        return None if configured in (None, self.table.compressor) else self.table.compressor

    def _smaller(
        self, features: Mapping[str, Any], wanted: Dose, skipped: Dose | None
    ) -> tuple[Dose, ...]:
        """Compressed RAG below the wanted dose, most first.

        Args:
            features: what was looked at.
            wanted: the dose, if money were no object.
            skipped: what compressing would have given, had it paid; ``None``: it was not asked, or pays.
        """
        if wanted.strategy == "compressed":
            return self._less(wanted)
        if skipped is not None:
            # where the money does not pay for the passages whole, compressing is what it pays for
            return skipped, *self._less(skipped)
        if wanted.strategy != "briefcontext":
            # who wants the passages whole gets fewer of them
            return ()
        kept = self._kept(features, [])
        if kept.strategy == "compressed":
            return kept, *self._less(kept)
        compressor = self.compressor
        if self.table is not None and self._learned:
            compressor = self._of_table(features)
        return self._less(Dose(strategy="compressed", compressor=compressor))

    def _less(self, dose: Dose) -> tuple[Dose, ...]:
        """The same with the shares that are smaller; with all, where nobody knows what the compressor keeps."""
        shares = (s for s in self.step_down if dose.keep is None or s < dose.keep)
        return tuple(replace(dose, keep=share) for share in shares)


def recorded_quote(record: Decision) -> Quote | None:
    """The prices of a record; ``None`` where no dose was priced.

    What it returns raises :class:`~posology.errors.InvalidRecord` for a dose that was not.
    """
    prices = {offer.dose: offer.worst for offer in record.offers}

    def quote(dose: Dose) -> Decimal:
        if dose not in prices:
            raise InvalidRecord(
                f"the record does not say what {describe(dose)} costs, which this policy asks for",
                field="offers",
            )
        return prices[dose]

    return quote if prices else None


def _told(dose: Dose, *, suspect: bool, sure: float) -> str:
    """What became a ladder, and why."""
    after = ", then BriefContext over all." if dose.escalate else "."
    if suspect:
        return (
            f"Doubling: less likely than {sure:g}, the issue is not worth BriefContext, and too likely for a few "
            f"passages: {describe(dose)}, in one call{after}"
        )
    return f"Doubling: {describe(dose)}, each if the one before is refused{after}"


def _number(features: Mapping[str, Any], name: str) -> int:
    value = features.get(name)
    if not isinstance(value, int):
        raise InvalidRecord(f"the record does not say {name!r}: {value!r}", field=name)
    return value
