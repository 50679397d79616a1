"""Levels of evidence of MEDLINE publication types.

The order is that of therapy questions (systematic review, trial, cohort, case report). A type describes the design of a
study, not its quality. Types without a study design (Multicenter Study, Comparative Study, Practice Guideline) have no
level.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from posology.types import Level

_NAMES: Mapping[Level, tuple[str, ...]] = MappingProxyType(
    {
        Level.SYSTEMATIC_REVIEW: (
            "meta-analysis",
            "network meta-analysis",
            "systematic review",
        ),
        Level.TRIAL: (
            "adaptive clinical trial",
            "clinical trial",
            "clinical trial, phase i",
            "clinical trial, phase ii",
            "clinical trial, phase iii",
            "clinical trial, phase iv",
            "controlled clinical trial",
            "equivalence trial",
            "pragmatic clinical trial",
            "randomized controlled trial",
            "randomised controlled trial",
        ),
        # MEDLINE has one type for all of these; other collections name the design
        Level.COHORT: (
            "case-control studies",
            "case-control study",
            "cohort studies",
            "cohort study",
            "cross-sectional studies",
            "cross-sectional study",
            "longitudinal studies",
            "longitudinal study",
            "observational study",
            "prospective studies",
            "prospective study",
            "retrospective studies",
            "retrospective study",
        ),
        Level.CASE_REPORT: ("case report", "case reports", "case series"),
    }
)
_LEVELS = {name: level for level, names in _NAMES.items() for name in names}


def level(publication_types: Iterable[str]) -> Level:
    """Return the strongest level that any of the types names; ``OTHER`` where none does.

    Only whole names count, in any case: a trial in animals ("…, Veterinary"), a trial's protocol
    and a "Review" without a method are ``OTHER``.
    """
    named = (_LEVELS.get(" ".join(kind.casefold().split())) for kind in publication_types)
    return min((found for found in named if found), key=lambda one: one.rank, default=Level.OTHER)
