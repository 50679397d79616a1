"""Decisions of a screening: of one or two readers on title and abstract, their disagreements, and on full texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.screening.candidates import Candidates
from orchestrator.screening.forms import (
    ExclusionReason,
    ScreeningReaders,
    ScreeningRecall,
    ScreeningReports,
)
from orchestrator.screening.sheets import DECISION, NOT_RETRIEVED, Sheet, read_sheet
from orchestrator.screening.stopping import CONFIDENCE, recall, step
from posology.errors import BadFile
from posology.types.tables import Screening

#: files of a folder beside the readers' sheets
DISAGREEMENTS, FULL_TEXT, DIAGRAM = "disagreements", "full-text", "prisma.svg"


@dataclass(frozen=True, kw_only=True, slots=True)
class Review:
    """Decisions of a folder's sheets."""

    #: one or two, by their names
    sheets: dict[str, Sheet]
    disagreements: Sheet
    full_text: Sheet
    #: decisions of each reader, by id
    readers: dict[str, dict[str, Screening]]
    #: decisions on disagreements, by id
    settled: dict[str, Screening]

    @classmethod
    def read(cls, folder: Path, readers: tuple[str, ...], candidates: Candidates) -> Review:
        """Read the sheets of a folder; those that do not exist yet are empty.

        Raises:
            BadFile: a sheet cannot be read, or has another form.
        """
        sheets = {
            name: read_sheet(folder / f"{name}.csv", candidates.same)
            for name in (*readers, DISAGREEMENTS, FULL_TEXT)
        }
        disagreements, full_text = sheets.pop(DISAGREEMENTS), sheets.pop(FULL_TEXT)
        return cls(
            sheets=sheets,
            disagreements=disagreements,
            full_text=full_text,
            readers={name: sheet.decisions() for name, sheet in sheets.items()},
            settled=disagreements.decisions(),
        )

    @property
    def places(self) -> dict[str, int]:
        """Return the place of each record in the reading order that was written last."""
        return self._numbers("place")

    @property
    def added(self) -> dict[str, int]:
        """Return, for each record, how many records had been read when it joined the list."""
        return self._numbers("added")

    def _numbers(self, column: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for sheet in reversed(self.sheets.values()):
            found |= sheet.numbers(column)
        return found

    @property
    def read_order(self) -> dict[str, bool]:
        """Return whether each read record is relevant, in the order of reading.

        Records are relevant unless excluded, so that an open disagreement or an unsure reader loses none.
        """
        decided = dict.fromkeys(name for some in self.readers.values() for name in some)
        places = self.places
        ordered = sorted(decided, key=lambda name: places.get(name, 0))
        return {name: not self._is_excluded(name) for name in ordered}

    def _is_excluded(self, name: str) -> bool:
        votes = {some[name] is Screening.EXCLUDE for some in self.readers.values() if name in some}
        if len(votes) > 1:
            return self.settled.get(name) is Screening.EXCLUDE
        return votes == {True}

    @property
    def disputed(self) -> tuple[str, ...]:
        """Return the records that one reader excludes and the other does not."""
        first, *second = self.readers.values()
        return tuple(
            name
            for other in second
            for name in first
            if name in other
            and (first[name] is Screening.EXCLUDE) is not (other[name] is Screening.EXCLUDE)
        )

    def agreement(self) -> ScreeningReaders | None:
        """Return how far the readers agree; ``None``: there is one."""
        if len(self.readers) < 2:
            return None
        first, second = self.readers.values()
        both = first.keys() & second.keys()
        votes = [(first[i] is Screening.EXCLUDE, second[i] is Screening.EXCLUDE) for i in both]
        return ScreeningReaders(
            both=len(both),
            one=len(first.keys() ^ second.keys()),
            disagreements=len(self.disputed),
            open=len(set(self.disputed) - self.settled.keys()),
            kappa=kappa(votes),
        )

    def statement(self, size: int, target: float) -> ScreeningRecall:
        """Return the statement of recall for a list of ``size`` records."""
        read = self.read_order
        withheld = self._withheld(read)
        since = max(self.added.values(), default=0)
        stand = None if withheld else recall(list(read.values()), size, since=since)
        following = (len(read) // step(size) + 1) * step(size)
        return ScreeningRecall(
            relevant=None if stand is None else stand.found,
            at_least=None if stand is None else stand.at_least,
            confidence=CONFIDENCE,
            target=target,
            reached=stand is not None and stand.reached(target),
            next_look=None if withheld or len(read) == size else min(following, size),
            withheld=withheld,
        )

    def _withheld(self, read: Mapping[str, bool]) -> str | None:
        """Return why the read records are not the first of an order that is known; ``None``: they are."""
        places = self.places
        if strange := [name for name in read if name not in places]:
            return f"the place of {strange[0]} in the reading order is unknown ({len(strange):,} records)"
        if skipped := self.passed_over:
            place = places[skipped[0]]
            return f"{len(skipped):,} records were passed over, the first is {skipped[0]} (place {place:,})"
        return None

    @property
    def passed_over(self) -> tuple[str, ...]:
        """Return the records without a decision that stand above the last one with a decision."""
        read, places = self.read_order, self.places
        last = max((places.get(name, 0) for name in read), default=0)
        skipped = (name for name in places if places[name] < last and name not in read)
        return tuple(sorted(skipped, key=places.__getitem__))

    def reports(self, sought: tuple[str, ...]) -> ScreeningReports:
        """Return the full-text stage.

        Raises:
            BadFile: a decision is none of include, exclude and not retrieved, or an exclusion has no reason.
        """
        reasons: Counter[str] = Counter()
        included = not_retrieved = 0
        for line, (name, row) in enumerate(self.full_text.rows.items(), 2):
            said, reason = row[DECISION].strip().casefold(), row.get("reason", "").strip()
            if name not in sought or not said:
                continue
            if said == NOT_RETRIEVED:
                not_retrieved += 1
            elif said in ("include", "included"):
                included += 1
            elif said in ("exclude", "excluded") and reason:
                reasons[reason] += 1
            else:
                wanted = "include, exclude (with a reason) or not retrieved"
                raise BadFile(
                    f"the decision on {name} must be {wanted} (got {row[DECISION]!r}, reason {reason!r})",
                    path=str(self.full_text.path),
                    line=line,
                )
        assessed = included + reasons.total()
        return ScreeningReports(
            sought=len(sought),
            waiting=len(sought) - assessed - not_retrieved,
            not_retrieved=not_retrieved,
            assessed=assessed,
            excluded=tuple(ExclusionReason(reason=r, reports=n) for r, n in reasons.most_common()),
            included=included,
        )


def kappa(votes: list[tuple[bool, bool]]) -> float | None:
    """Return Cohen's kappa of two readers; ``None``: no votes, or both say the same of all (Cohen 1960)."""
    if not votes:
        return None
    shares = [sum(vote[reader] for vote in votes) / len(votes) for reader in (0, 1)]
    chance = shares[0] * shares[1] + (1 - shares[0]) * (1 - shares[1])
    agreed = sum(one == other for one, other in votes) / len(votes)
    return None if chance == 1 else (agreed - chance) / (1 - chance)
