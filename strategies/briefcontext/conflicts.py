"""Conflicts between sources, and the rule that resolves them, without a model.

BriefContext, section 2.3, leaves it to the model which of two contradicting partitions to believe,
and reports how often that goes wrong. Here a model only assigns findings to the sides of a claim; the prevailing side
follows from the kinds of the sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from posology.evidence import level
from posology.types import Citation, Conflict, Resolution, Side
from prompts.reduce import Sourced

#: Years between two sources of equal level from which on the later one prevails. Half of the
#: systematic reviews in a cohort of 100 called for an update within 5.5 years (Shojania et al.,
#: Ann Intern Med 2007); less than about that says little.
CLEARLY_LATER = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Ruling:
    """Resolution of a conflict: the side that prevails, and the reason."""

    resolution: Resolution
    how: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Opposed:
    """A claim's sources, one :class:`Side` a passage."""

    supporting: tuple[Side, ...]
    opposing: tuple[Side, ...]
    #: ids of passages on both sides, which count on neither
    torn: tuple[str, ...]


def oppose(supporting: Sequence[Sourced], opposing: Sequence[Sourced]) -> Opposed:
    """Gather findings by their source.

    A passage on both sides does not contradict another on this claim: its findings are of different
    patients or outcomes, or were grouped wrongly. It is taken off both.
    """
    torn = {s.passage.id for s in supporting} & {s.passage.id for s in opposing}
    return Opposed(
        supporting=_sides([s for s in supporting if s.passage.id not in torn]),
        opposing=_sides([s for s in opposing if s.passage.id not in torn]),
        torn=tuple(sorted(torn)),
    )


def judge(claim: str, opposed: Opposed) -> Conflict | None:
    """Return the conflict on a claim and its resolution; ``None`` unless both sides have sources."""
    if not opposed.supporting or not opposed.opposing:
        return None
    ruling = rule(opposed.supporting, opposed.opposing)
    return Conflict(
        claim=claim,
        supporting=opposed.supporting,
        opposing=opposed.opposing,
        resolution=ruling.resolution,
        how=ruling.how,
    )


def rule(supporting: Sequence[Side], opposing: Sequence[Side]) -> Ruling:
    """Decide which of two sides prevails, regardless of the order of the sources.

    1. Retracted sources do not count: a side that has no other loses, and if neither has another
       nothing is resolved.
    2. The side with the source of the stronger level prevails.
    3. Of equal levels, the side whose newest source of that level is at least
       :data:`CLEARLY_LATER` years later prevails; a source of unknown year might be the newest, so
       a side that has one cannot be outdated.
    4. Otherwise nothing is resolved; nor where every source on which that rests, those of the stronger level or
       the late ones, is one about which an expression of concern was published: its journal has not yet said
       whether it may be believed.

    Args:
        supporting: at least one source.
        opposing: at least one source.
    """
    for_, against = _standing(supporting), _standing(opposing)
    if not for_ and not against:
        return Ruling(
            resolution=Resolution.UNRESOLVED,
            how=f"Not resolved: all sources are retracted ({_named([*supporting, *opposing])}).",
        )
    if not against:
        return _prevails(Resolution.SUPPORTING, for_, opposing, "every other source is retracted")
    if not for_:
        return _prevails(
            Resolution.OPPOSING, against, supporting, "every other source is retracted"
        )
    strong, weak = _best(for_), _best(against)
    if strong[0].level is not weak[0].level:
        if strong[0].level.rank < weak[0].level.rank:
            return _prevails(
                Resolution.SUPPORTING, strong, weak, "the evidence is of a higher level"
            )
        return _prevails(Resolution.OPPOSING, weak, strong, "the evidence is of a higher level")
    later = f"the evidence is of the same level and at least {CLEARLY_LATER} years later"
    if _outdates(strong, weak):
        return _prevails(Resolution.SUPPORTING, _later(strong, weak), weak, later)
    if _outdates(weak, strong):
        return _prevails(Resolution.OPPOSING, _later(weak, strong), strong, later)
    undated = any(side.year is None for side in (*strong, *weak))
    return Ruling(
        resolution=Resolution.UNRESOLVED,
        how=(
            f"Not resolved: {_named(strong)} supporting and {_named(weak)} opposing are of the same "
            + (
                "level, and a year is unknown."
                if undated
                else f"level and less than {CLEARLY_LATER} years apart."
            )
        ),
    )


def _sides(findings: Sequence[Sourced]) -> tuple[Side, ...]:
    sources: dict[str, list[Sourced]] = {}
    for finding in sorted(findings, key=lambda f: f.rank):
        sources.setdefault(finding.passage.id, []).append(finding)
    return tuple(_side(same) for same in sources.values())


def _side(same: Sequence[Sourced]) -> Side:
    passage = same[0].passage
    return Side(
        passage_id=passage.id,
        level=level(passage.publication_types),
        year=passage.year,
        retracted=passage.retracted,
        concern=passage.concern,
        citations=union(same),
    )


def union(findings: Sequence[Sourced]) -> tuple[Citation, ...]:
    """Return the findings' citations in their order, each span once."""
    return tuple(dict.fromkeys(c for finding in findings for c in finding.citations))


def _standing(sides: Sequence[Side]) -> list[Side]:
    return [side for side in sides if not side.retracted]


def _best(sides: Sequence[Side]) -> list[Side]:
    top = min(side.level.rank for side in sides)
    return [side for side in sides if side.level.rank == top]


def _outdates(one: Sequence[Side], other: Sequence[Side]) -> bool:
    mine = [side.year for side in one if side.year is not None]
    theirs = [side.year for side in other if side.year is not None]
    if not mine or len(theirs) < len(other):
        return False
    return max(mine) - max(theirs) >= CLEARLY_LATER


def _later(one: Sequence[Side], other: Sequence[Side]) -> list[Side]:
    """Return the sources that are late enough to decide."""
    return [side for side in one if _outdates([side], other)]


def _prevails(
    resolution: Resolution, winners: Sequence[Side], losers: Sequence[Side], why: str
) -> Ruling:
    if all(side.concern for side in winners):
        return Ruling(
            resolution=Resolution.UNRESOLVED,
            how=(
                f"Not resolved: {_named(winners)} would prevail over {_named(losers)}, because {why}, but an "
                "expression of concern was published about all of it."
            ),
        )
    return Ruling(
        resolution=resolution,
        how=(
            f"Resolved for the {resolution} side: {_named(winners)} over {_named(losers)}, "
            f"because {why}."
        ),
    )


def _named(sides: Sequence[Side]) -> str:
    return ", ".join(_name(side) for side in sorted(sides, key=lambda side: side.passage_id))


def _name(side: Side) -> str:
    year = "year unknown" if side.year is None else str(side.year)
    warned = ", retracted" if side.retracted else ", expression of concern" if side.concern else ""
    return f"{side.passage_id} ({side.level}, {year}{warned})"
