"""The router: preflight, Q-table, doubling and stepping down, one after the other.

Each part is optional, so most named policies are this one with other parts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from policies import affordable, preflight, qtable
from policies import savings as saving
from policies.affordable import (
    COMPRESSED,
    PARTITIONED,
    STEP_DOWN,
    WHOLE,
    Quote,
    afford,
    describe,
    further,
    whole,
)
from policies.doubling import Doubling
from policies.preflight import Prediction, Predictor
from policies.qtable import QTable
from posology.errors import InvalidRecord
from posology.types import Decision, Dose, Situation

#: bytes of a version
_VERSION = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Router:
    """Decides by its parts; without any, direct RAG over all passages, or less if the budget is short."""

    #: name with settings, e.g. ``router:preflight=published``
    name: str = "router"
    #: predicts whether the key passage is buried; ``None``: never BriefContext at once
    preflight: Predictor | None = None
    #: chooses the share to keep; ``None``: ``keep`` for all questions
    table: QTable | None = None
    #: makes ladders; ``None``: one call shows all passages
    doubling: Doubling | None = None
    #: share to keep without a table, 0 to 1; 1: direct RAG; ``None``: the compressor's own choice
    keep: float | None = 1.0
    #: name of the requested compressor; ``None``: the table's, or the configured one
    compressor: str | None = None
    #: whether a compressor that costs more than it saves is skipped
    saving: bool = True
    #: Least probability of a buried passage for BriefContext at once. Below it, a flagged question has all passages
    #: in one call, while others begin with a few. The published rule, which has no probability, suffices if it was
    #: chosen, and does not where it stands in for a missing calibration
    issue: float = 0.0
    #: shares that are tried if the budget is short, falling; empty: only the share that is kept anyway
    step_down: tuple[float, ...] = STEP_DOWN
    #: whether a dose follows after every step of a ladder was refused: BriefContext over all passages
    escalate: bool = True
    #: whether that dose reads passages of a second search instead, if it finds any
    search: bool = False
    #: name of the embedder of the compared vectors, for the record; ``None``: unknown
    embedder: str | None = None
    #: name of the configured compressor, for the record; ``None``: unknown
    configured: str | None = None

    @property
    def parts(self) -> Mapping[str, str]:
        """See :class:`~posology.seams.Policy`."""
        shares = "/".join(map(repr, self.step_down)) or "off"
        escalate = "search" if self.search else self.escalate
        parts = {
            "settings": f"keep {self.keep!r}, escalate {escalate}, issue {self.issue!r}, step down {shares}",
            "affordable": affordable.VERSION,
        }
        if self.compressor is not None:
            parts["compressor"] = self.compressor
        if self.saving:
            parts["saving"] = saving.VERSION
        if self.preflight is not None:
            parts["preflight"] = f"{self.preflight.name} {self.preflight.version}"
        if self.table is not None:
            parts["qtable"] = self.table.digest
        if self.doubling is not None:
            parts["doubling"] = self.doubling.version
        return parts

    @property
    def version(self) -> str:
        """Digest of its parts and settings."""
        text = "\0".join(f"{name} {version}" for name, version in sorted(self.parts.items()))
        return hashlib.blake2b(text.encode(), digest_size=_VERSION).hexdigest()

    def __call__(self, situation: Situation) -> Decision:
        """Decide.

        Raises:
            PolicyMismatch: the Q-table was trained with another embedder.
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
            if dose.strategy == COMPRESSED:
                features |= saving.observe(situation.saving(dose))
        return self._decide(features, situation.remaining, situation.quote)

    def replay(self, record: Decision) -> Decision:
        """Decide from the features, the remaining budget and the prices of a record.

        Raises:
            InvalidRecord: the record lacks a feature or a price.
            PolicyMismatch: the record was made with another Q-table.
        """
        return self._decide(dict(record.features), record.remaining, recorded_quote(record))

    def _decide(
        self, features: dict[str, Any], remaining: Decimal | None, quote: Quote | None
    ) -> Decision:
        passages = _number(features, "passages")
        wanted, steps = self._wanted(features, passages)
        reason = steps[-1]
        # the dose of a compressor that does not pay for itself
        skipped: Dose | None = None
        weighed = saving.recorded(features) if self.saving else None
        if weighed is not None and wanted.strategy == COMPRESSED:
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
        afforded = afford(
            wanted,
            remaining=remaining,
            quote=quote,
            passages=passages,
            compressed=self._smaller(features, wanted, skipped),
            # after a refusal, a smaller dose would be refused, too
            alternatives=not features["tried"],
        )
        return replace(
            decision,
            dose=afforded.dose,
            reason=decision.reason if afforded.dose == wanted else afforded.reason,
            steps=(*steps, f"Money: {afforded.reason}"),
            remaining=remaining,
            offers=afforded.offers,
        )

    def _wanted(self, features: Mapping[str, Any], passages: int) -> tuple[Dose, list[str]]:
        """Return the dose without regard to money, and the sentences that explain it."""
        steps: list[str] = []
        suspect, sure = False, None
        if not passages:
            return Dose(strategy=WHOLE), ["Nothing was retrieved: there is nothing to decide."]
        tried = _number(features, "tried")
        if tried and self.search and passages > tried:
            dose = further(self._kept(features, steps), tried)
            steps.append(
                f"Search: {tried} passages were read without an answer that a quote supports: "
                f"{passages - tried} others."
            )
            return dose, steps
        if tried:
            steps.append(
                f"Doubling: {tried} of {passages} passages were read, and the reply was a refusal to "
                "the last: BriefContext over all."
            )
            return Dose(strategy=PARTITIONED), steps
        if self.preflight is not None:
            predicted = self.preflight(features)
            steps.append(f"Preflight ({self.preflight.name}): {predicted.reason}")
            # among so few passages none is in the middle, regardless of longer rankings
            suspect = predicted.issue and passages > preflight.SPOTLIGHT
            sure = None if predicted.probability is None else self.issue
            if suspect and self._sure(predicted):
                return Dose(strategy=PARTITIONED), steps
        dose = self._kept(features, steps)
        if self.doubling is not None:
            # among so few passages none is in the middle: BriefContext would repeat the same call
            escalate = self.escalate and (self.search or passages > preflight.SPOTLIGHT)
            dose = replace(
                dose,
                # the first few passages are likely to miss the key passage
                rungs=(passages,) if suspect else self.doubling.rungs(passages),
                overlapping=self.doubling.overlapping,
                escalate=escalate,
                search=escalate and self.search,
            )
            steps.append(_explained(dose, suspect=suspect, sure=sure))
        if not steps:
            steps.append(f"{describe(dose)} is what this policy gives.")
        return dose, steps

    def _sure(self, predicted: Prediction) -> bool:
        """Return whether a buried passage is likely enough for BriefContext to be worth its price."""
        if predicted.probability is None:
            return predicted.certain
        return predicted.probability >= self.issue

    @property
    def _learned(self) -> bool:
        """Whether the table learned with the requested compressor, if one is requested."""
        assert self.table is not None
        return self.compressor in (None, self.table.compressor)

    def _kept(self, features: Mapping[str, Any], steps: list[str]) -> Dose:
        """Return direct RAG, or compressed RAG with a share and a compressor; adds the table's sentence to ``steps``."""
        keep, compressor = self.keep, self.compressor
        if self.table is not None:
            # its shares hold only for the compressor that it learned with
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
            return Dose(strategy=WHOLE)
        return Dose(strategy=COMPRESSED, keep=keep, compressor=compressor)

    def _of_table(self, features: Mapping[str, Any]) -> str | None:
        """Return the compressor that the table learned with; ``None`` if that is the configured one."""
        assert self.table is not None
        if self.compressor is not None:
            return self.compressor
        configured = features.get("compressor")
        return None if configured in (None, self.table.compressor) else self.table.compressor

    def _smaller(
        self, features: Mapping[str, Any], wanted: Dose, skipped: Dose | None
    ) -> tuple[Dose, ...]:
        """Return doses of compressed RAG below the wanted dose, largest first.

        Args:
            features: features of the decision.
            wanted: dose without regard to money.
            skipped: dose of a compressor that does not pay for itself; ``None``: there is none.
        """
        if wanted.strategy == COMPRESSED:
            return self._less(wanted)
        if skipped is not None:
            # if the budget does not pay for whole passages, it may pay for compressed ones
            return skipped, *self._less(skipped)
        if wanted.strategy == WHOLE:
            # whole passages step down to fewer whole passages
            return ()
        kept = self._kept(features, [])
        if kept.strategy == COMPRESSED:
            return kept, *self._less(kept)
        compressor = self.compressor
        if self.table is not None and self._learned:
            compressor = self._of_table(features)
        return self._less(Dose(strategy=COMPRESSED, compressor=compressor))

    def _less(self, dose: Dose) -> tuple[Dose, ...]:
        """Return the dose with each smaller share; with every share if the compressor chooses its own."""
        shares = (s for s in self.step_down if dose.keep is None or s < dose.keep)
        return tuple(replace(dose, keep=share) for share in shares)


def recorded_quote(record: Decision) -> Quote | None:
    """Return the prices of a record; ``None`` if it priced no dose.

    The returned function raises :class:`~posology.errors.InvalidRecord` for a dose without a price.
    """
    prices = {offer.dose: offer.worst for offer in record.offers}

    def quote(dose: Dose) -> Decimal:
        if dose not in prices:
            raise InvalidRecord(
                f"the record has no price for {describe(dose)}, which this policy needs",
                field="offers",
            )
        return prices[dose]

    return quote if prices else None


def _explained(dose: Dose, *, suspect: bool, sure: float | None) -> str:
    """Explain the steps of a ladder.

    Args:
        dose: the dose.
        suspect: whether the key passage is expected beyond the first.
        sure: probability that would suffice for BriefContext at once; ``None``: the probability is unknown.
    """
    after = "."
    if dose.search:
        after = ", then a second search."
    elif dose.escalate:
        after = ", then BriefContext over all."
    if suspect and sure is None:
        return (
            f"Doubling: not calibrated, the issue is no reason for BriefContext, and too likely for a few passages: "
            f"{describe(dose)}, in one call{after}"
        )
    if suspect:
        return (
            f"Doubling: less likely than {sure:g}, the issue is not worth BriefContext, and too likely for a few "
            f"passages: {describe(dose)}, in one call{after}"
        )
    return f"Doubling: {describe(dose)}, each if the one before is refused{after}"


def _number(features: Mapping[str, Any], name: str) -> int:
    value = features.get(name)
    if not isinstance(value, int):
        raise InvalidRecord(f"feature {name!r} must be a whole number (got {value!r})", field=name)
    return value
