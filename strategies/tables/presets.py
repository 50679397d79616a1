"""Fields that are ready: PICO, and the criteria of a screening."""

from __future__ import annotations

from collections.abc import Sequence

from posology.text.figures import COUNT
from posology.types import SentenceRole
from posology.types.tables import VERDICTS, Cue, Field, FieldKind

#: roles of sentences that say who was studied, and how a study was done
STUDIED = frozenset({SentenceRole.METHODS, SentenceRole.RESULTS})
DONE = frozenset({SentenceRole.AIM, SentenceRole.METHODS})
_FOUND = frozenset({SentenceRole.RESULTS})
#: people that are studied, as alternatives of an expression
PEOPLE = (
    "patients|participants|subjects|volunteers|adults|adolescents|children|infants|neonates|women|men|individuals|people|"
    "students|families"
)
_COUNT = rf"(?P<value>{COUNT})"
_JOINED = "randomi[sz]ed|enrolled|recruited|included|allocated|assigned|entered"

#: population, intervention, comparator and outcome of a study, its effect, design, size and funding
PICO: tuple[Field, ...] = (
    Field(
        name="population",
        question="Which people or animals were studied, and with which condition?",
        roles=STUDIED,
        cues=(
            Cue(pattern=rf"(?i)\b(?P<value>healthy\s+(?:[\w-]{{1,30}}\s+){{0,2}}(?:{PEOPLE}))\b"),
            Cue(
                pattern=rf"(?i)\b(?P<value>(?:{PEOPLE})\s+(?:with|undergoing|suffering\s+from|aged)\b[^.;,]{{3,120}})"
            ),
        ),
    ),
    Field(
        name="intervention",
        question="Which treatment, test or exposure was studied, with dose and duration?",
        roles=DONE,
        cues=(
            Cue(
                pattern=r"(?i)\b(?:randomi[sz]ed|assigned|allocated)\b[^.;]{0,60}?\bto\s+(?:receive\s+)?(?:either\s+)?(?P<value>[^.;]{3,160})"
            ),
            Cue(
                pattern=r"(?i)\b(?:effects?|efficacy|effectiveness|safety)\s+of\s+(?P<value>[^.,;]{3,120})"
            ),
            Cue(
                pattern=r"(?i)\b(?:received|treated\s+with|were\s+given)\s+(?P<value>[^.;]{3,120})"
            ),
        ),
    ),
    Field(
        name="comparator",
        question="What was it compared with, for example placebo or another treatment?",
        roles=DONE,
        cues=(
            Cue(
                pattern=r"(?i)\b(?:compared\s+(?:with|to)|versus|vs\.?|or)\s+(?P<value>(?:[\w-]{1,30}\s+){0,2}placebo)\b"
            ),
            Cue(
                pattern=r"(?i)\b(?:compared\s+(?:with|to)|in\s+comparison\s+(?:with|to)|versus)\s+(?P<value>[^.,;:()]{3,120})"
            ),
            Cue(
                pattern=r"(?i)\bcontrol\s+group\s+(?:received|was\s+given|had)\s+(?P<value>[^.;]{3,120})"
            ),
        ),
    ),
    Field(
        name="outcome",
        question="What was the primary outcome, and how was it measured?",
        roles=DONE,
        cues=(
            Cue(
                pattern=r"(?i)\bprimary\s+(?:\w+\s+)?(?:outcomes?|end-?\s?points?|variables?|measures?)\b[^.;]{0,60}?\b(?:was|were|is|are)\s+(?:defined as\s+)?(?P<value>[^.;]{3,200})"
            ),
            Cue(
                pattern=r"(?i)\b(?:main|primary)\s+outcome\s+measures?\s*:?\s+(?P<value>[^.;]{3,200})"
            ),
        ),
    ),
    Field(
        name="effect",
        question="What was the effect on the primary outcome, with its estimate, confidence interval and p value?",
        roles=_FOUND,
        cues=(
            Cue(pattern=r"(?i)\bprimary\b.{0,400}(?:\bp\s*[<=>]|confidence interval|\bCI\b)"),
            Cue(
                pattern=r"(?i)(?:difference|ratio|reduction|increase|higher|lower|greater)\b.{0,400}(?:\b95\s?%\s?(?:CI|confidence interval)|\bp\s*[<=>]\s*0?\.\d)"
            ),
        ),
    ),
    Field(
        name="design",
        question="What was the design of the study?",
        kind=FieldKind.CHOICE,
        choices=(
            "randomised trial",
            "non-randomised trial",
            "cohort study",
            "case-control study",
            "cross-sectional study",
            "case report or series",
            "systematic review",
            "other",
        ),
        roles=DONE,
        cues=(
            Cue(pattern=r"(?i)\bnon-?randomi[sz]ed\b", choice="non-randomised trial"),
            Cue(
                pattern=r"(?i)\brandomi[sz]ed\b.{0,80}\b(?:trial|study|design)\b|\brandomly\s+(?:assigned|allocated)\b|\b(?:was|were|we)\s+randomi[sz]ed\b",
                choice="randomised trial",
            ),
            Cue(
                pattern=r"(?i)\bsystematic review\b|\bmeta-analys[ie]s\b",
                choice="systematic review",
            ),
            Cue(pattern=r"(?i)\bcase-control (?:study|design)\b", choice="case-control study"),
            Cue(pattern=r"(?i)\bcohort (?:study|design)\b", choice="cohort study"),
            Cue(
                pattern=r"(?i)\bcross-sectional (?:study|survey|design)\b",
                choice="cross-sectional study",
            ),
            Cue(pattern=r"(?i)\bcase (?:report|series)\b", choice="case report or series"),
        ),
    ),
    Field(
        name="n",
        question="How many participants were included or randomised?",
        kind=FieldKind.NUMBER,
        roles=STUDIED,
        cues=(
            Cue(
                pattern=rf"(?i)\b{_COUNT}\s+(?:[\w-]{{1,30}}\s+){{0,4}}?(?:{PEOPLE})\b[^.;]{{0,80}}?\brandomi[sz]ed\b"
            ),
            Cue(
                pattern=rf"(?i)\brandomi[sz]ed\s+{_COUNT}\s+(?:[\w-]{{1,30}}\s+){{0,4}}?(?:{PEOPLE})\b"
            ),
            Cue(
                pattern=rf"(?i)\b{_COUNT}\s+(?:[\w-]{{1,30}}\s+){{0,4}}?(?:{PEOPLE})\b[^.;]{{0,80}}?\b(?:{_JOINED})\b"
            ),
            Cue(
                pattern=rf"(?i)\b(?:{_JOINED}|total of)\s+{_COUNT}\s+(?:[\w-]{{1,30}}\s+){{0,4}}?(?:{PEOPLE})\b"
            ),
        ),
    ),
    Field(
        name="funding",
        question="Who funded the study?",
        cues=(
            Cue(
                pattern=r"(?i)\b(?:funded|supported|sponsored|financed)\s+(?:in part\s+|entirely\s+|financially\s+)?by\s+(?!(?:\w+\s+){0,2}(?:data|results?|findings?|evidence|observations?|stud(?:y|ies)))(?P<value>[^.;]{3,200})"
            ),
            Cue(
                pattern=r"(?i)\b(?:funding|grants?|financial support)\b.{0,60}?\bfrom\s+(?P<value>[^.;]{3,200})"
            ),
        ),
    ),
)


def criteria(texts: Sequence[str]) -> tuple[Field, ...]:
    """Return the fields of a screening: one for each criterion of inclusion.

    Args:
        texts: criteria that a document must meet, e.g. ``Adults with type 2 diabetes``.
    """
    return tuple(
        Field(
            name=f"criterion_{number}",
            question=f"Does the study meet this criterion of inclusion: {text}",
            kind=FieldKind.CHOICE,
            choices=VERDICTS,
        )
        for number, text in enumerate(texts, 1)
    )
