"""Fields that are ready: PICO, and the criteria of a screening."""

from __future__ import annotations

from collections.abc import Sequence

from posology.text.figures import COUNT, WORDED
from posology.types import SentenceRole
from posology.types.tables import VERDICTS, Cue, Field, FieldKind

#: roles of sentences that say who was studied, and how a study was done
STUDIED = frozenset({SentenceRole.METHODS, SentenceRole.RESULTS})
DONE = frozenset({SentenceRole.AIM, SentenceRole.METHODS})
_FOUND = frozenset({SentenceRole.RESULTS})
#: people that are studied, as alternatives of an expression
PEOPLE = (
    "patients|outpatients|inpatients|participants|subjects|volunteers|adults|adolescents|children|infants|neonates|women|men|individuals|people|"
    "students|families"
)
#: a count in digits or words, but for "one" and "several hundred"
_ANY = rf"(?:{COUNT}|(?<!several )(?<!few )(?<!many )(?<!some )(?!one\b){WORDED})"
_COUNT = rf"(?P<value>{_ANY})"
_JOINED = "randomi[sz]ed|enrolled|recruited|included|allocated|assigned|entered"
_ALLOCATED = r"\b(?:randomi[sz]ed(?!,?\s+(?:[\w-]{1,30},?\s+){0,3}(?:trials?|stud(?:y|ies)|design|compar))|randomly|assigned|allocated)\b"
_KIND = rf"\s+(?:[\w/-]{{1,30}}\s+){{0,5}}?(?:{PEOPLE})\b"
_COUNTED = rf"\b{_COUNT}{_KIND}"
_WERE = r"(?:[^.;]{0,80}?\b(?:were|was)(?:\s+\w{1,20}){0,2}?)?\s+"
#: outcome that a trial was made for
PRIMARY = r"primary\s+(?:\w+\s+)?(?:outcomes?|end-?\s?points?|variables?|measures?)"
#: people described by condition, age or kind
_DESCRIBED = (
    rf"(?:\bhealthy\s+(?:[\w-]{{1,30}}\s+){{0,3}}(?:{PEOPLE})\b|{_ANY}\s+(?:[\w/-]{{1,30}}\s+){{1,5}}(?:{PEOPLE})\b|"
    rf"\b(?:{PEOPLE})\s+(?:\([^()]{{1,60}}\)\s+)?(?:with|undergoing|suffering\s+from|aged|who|having|attending|presenting|admitted|"
    r"hospitali[sz]ed|diagnosed)\b)"
)
#: what a study sets out to do, in its own words
_AIM = (
    r"(?:\bwe\s+(?:\w+\s+)?(?:aimed|compared?|evaluated?|assess(?:ed)?|investigated?|examined?|studied|tested|determined?|sought)\b|"
    r"\b(?:aims?|purpose|objectives?|goal)\b|\b(?:this|the\s+present|our|the\s+current)\s+(?:\w+\s+)?(?:study|trial)\b|"
    r"^(?:[A-Z]+:\s*)?to\s+(?:compare|evaluate|assess|investigate|examine|study|test|determine|establish|clarify)\b)"
)
#: sentences about other studies, usual practice or a part of the study
_ELSEWHERE = (
    r"(?i)^(?:finally|in\s+addition|additionally|furthermore|moreover)\b|\bsub-?(?:groups?|stud(?:y|ies)|sets?)\b|\b(?:previous|prior|earlier|recent|other|several|many|most|some|published|all)\s+(?:[\w-]+\s+){0,3}(?:stud(?:y|ies)|trials?|reports?|"
    r"meta-analys[ie]s)\b|\b(?:studies|trials|have|has)\s+(?:been\s+)?(?:shown|reported|associated|suggested|demonstrated|found|proposed|"
    r"implicated)\b|\b(?:may|remains?|controversial|unclear|often|commonly|usually|routinely)\b"
)
#: the same, and sentences of results and conclusions
_OUTSIDE = (
    _ELSEWHERE
    + r"|\d\s?%|\bp\s*[<=>]|\bconfidence\s+interval|\bCI\b|\bsignifican|\bconclu|\bsuggest|\bshow(?:s|ed|n)?\b|\bdemonstrate|\bconfirm|"
    r"\b(?:was|were)\s+(?:reduced|increased|decreased|improved|observed|higher|lower|similar)\b|\boccurred\b|\b(?:in|de)creased\s+(?:by|from)\b|"
    r"\bindicate|\breveal|\bmore\s+effective|\bas\s+effective|\bexclud"
)
#: people who are counted otherwise than as included, and two counts of people
_PART = (
    r"(?i)\bper[- ]protocol\b|\banaly[sz]|\bcomplet|\bexclud|\bwithdr|\bof\s+(?:these|whom)\b|\b(?:each|per)\b"
    rf"|\b{_ANY}{_KIND}.*?\b{_ANY}{_KIND}"
)


def _cues(*patterns: str) -> tuple[Cue, ...]:
    """Return cues of what a study did, which are none in sentences about anything else."""
    return tuple(Cue(pattern=f"(?i){pattern}", unless=_OUTSIDE) for pattern in patterns)


#: population, intervention, comparator and outcome of a study, its effect, design, size and funding
PICO: tuple[Field, ...] = (
    Field(
        name="population",
        question="Which people or animals were studied, and with which condition?",
        roles=STUDIED,
        cues=_cues(
            rf"{_DESCRIBED}[^;]{{0,250}}?\b(?:were|was|participated|took)\s+(?:\w+\s+)?(?:{_JOINED}|randomly|studied|investigated|examined|part|in)\b",
            rf"\b(?:we\s+(?:\w+\s+)?(?:studied|examined|investigated)|{_JOINED})\s+(?:[^\s;]{{1,20}}\s+){{0,3}}?{_DESCRIBED}",
            rf"\b(?:participants|subjects)\s+were\s[^.;]{{0,60}}?\b(?:{PEOPLE}|aged)\b",
            rf"\b(?:was|were|been)\b[^;]{{0,200}}?\bin\s+(?:a\s+total\s+of\s+)?{_ANY}\s+{_DESCRIBED}",
            rf"{_AIM}[^;]{{0,300}}\b(?:in|of|among|for)\s+(?:[\w-]{{1,30}}\s+){{0,4}}?{_DESCRIBED}",
        ),
    ),
    Field(
        name="intervention",
        question="Which treatment, test or exposure was studied, with dose and duration?",
        roles=DONE,
        cues=_cues(
            rf"{_ALLOCATED}[^;]{{0,80}}?\bto\s+(?!(?:(?:either|the)\s+)?(?:one|two|three|four|five|\d|groups?|study|evaluate|assess|determine)\b)",
            r"\brandomly\s+(?:treated|given|received)\b",
            rf"{_AIM}[^;]{{0,200}}\b(?:effects?|efficacy|effectiveness|safety)\b[^;]{{0,60}}?\bof\b",
            r"\b(?:effects?|efficacy|effectiveness|safety)\b[^;]{0,60}?\bof\b[^;]{0,200}\b(?:was|were|been)\s+(?:\w+\s+)?(?:compared|studied|evaluated|investigated|assessed|examined)\b",
            rf"\b(?:{PEOPLE}|groups?|they)\b(?!\s+who\b)[^.;]{{0,40}}?(?<!who)\s(?:received|were\s+(?:given|treated\s+with|administered))\b(?!\s+other\b)",
        ),
    ),
    Field(
        name="comparator",
        question="What was it compared with, for example placebo or another treatment?",
        roles=DONE,
        cues=_cues(
            rf"{_ALLOCATED}[^;]{{0,200}}\b(?:or|versus|vs)\b",
            rf"{_AIM}[^;]{{0,300}}\b(?:compar(?:ed|ing|ison)\s+(?:with|to)|versus|vs)\b",
            rf"{_AIM}[^;]{{0,100}}?\bcompar(?:ed?|ing)\b[^;]{{0,200}}\b(?:with|and|to)\b",
            r"\b(?:was|were|been)\s+(?:\w+\s+)?compared\s+(?:with|to)\s+(?!baseline|values|those)",
            r"\bplacebo[- ]controlled\b[^;]{0,40}?\b(?:trial|study|design|fashion|manner)\b",
            r"\bcontrol\s+group\s+(?:received|was\s+given)\b",
        ),
    ),
    Field(
        name="outcome",
        question="What was the primary outcome, and how was it measured?",
        roles=DONE,
        cues=_cues(
            rf"\b{PRIMARY}\b[^.;]{{0,60}}?\b(?:was|were|is|are)\s+(?!(?:not\s+)?(?:reached|met|achieved|observed|similar|higher|lower|reduced|improved)\b)",
            r"\b(?:main|primary)\s+outcome\s+measures?\s*:?\s+\w",
        ),
    ),
    Field(
        name="effect",
        question="What was the effect on the primary outcome, with its estimate, confidence interval and p value?",
        roles=_FOUND,
        cues=(
            Cue(pattern=rf"(?i)\b{PRIMARY}\b.{{0,400}}(?:\bp\s*[<=>]|confidence interval|\bCI\b)"),
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
        cues=tuple(
            Cue(pattern=f"(?i){pattern}", choice=choice, unless=_ELSEWHERE)
            for pattern, choice in (
                (
                    r"\b(?:we|this|our|the\s+present)\b[^;]{0,100}\b(?:systematic(?:ally)?\s+review|meta-analy)|^(?:[A-Z]+:\s*)?(?:an?\s+)?(?:systematic\s+review|meta-analysis)\b",
                    "systematic review",
                ),
                (
                    r"\bnon-?randomi[sz]ed\b.{0,80}\b(?:trial|study|design)\b",
                    "non-randomised trial",
                ),
                (
                    rf"\brandomi[sz]ed\b.{{0,80}}\b(?:trial|study|design)\b|\brandomly\s+(?:assigned|allocated|treated|received)\b|\b(?:was|were|we)\s+randomi[sz]ed\b|\b(?:{PEOPLE})\s+randomi[sz]ed\s+to\b",
                    "randomised trial",
                ),
                (r"\bcase-control\s+(?:study|design)\b", "case-control study"),
                (r"\bcohort\s+(?:study|design)\b", "cohort study"),
                (r"\bcross[- ]sectional\s+(?:study|survey|design)\b", "cross-sectional study"),
                (
                    r"\b(?:this|our)\s+case\s+(?:report|series)\b|\bwe\s+(?:report|present|describe)\s+(?:an?|the|two|three)\s+(?:[\w-]{1,30}\s+){0,3}(?:case|patient)",
                    "case report or series",
                ),
            )
        ),
    ),
    Field(
        name="n",
        question="How many participants were included or randomised?",
        kind=FieldKind.NUMBER,
        roles=STUDIED,
        cues=tuple(
            Cue(pattern=f"(?i){pattern}", unless=_PART)
            for pattern in (
                rf"{_COUNTED}{_WERE}randomi[sz]ed\b",
                rf"\brandomi[sz]ed\s+{_COUNTED}(?!\s+and\b)",
                rf"{_COUNTED}(?:{_WERE}(?:{_JOINED}|studied)|[^.;]{{0,80}}?\s(?:participated|took\s+part))\b",
                rf"\b(?:{_JOINED})\s+(?:a\s+total\s+of\s+)?{_COUNTED}(?!\s+and\b)",
            )
        ),
    ),
    Field(
        name="funding",
        question="Who funded the study?",
        cues=(
            Cue(
                pattern=r"(?i)(?:^(?:[A-Z ]+:\s*)?|\b(?:study|trial|work|research|project|review|authors?)\s+(?:was|were|is|are)\s+(?:\w+\s+)?)(?:funded|supported|sponsored|financed)\s+(?:in part\s+|entirely\s+|financially\s+)?by\s+(?!(?:\w+\s+){0,2}(?:data|results?|findings?|evidence|observations?|stud(?:y|ies)))"
            ),
            Cue(pattern=r"(?i)\b(?:funding|grants?|financial support)\b.{0,60}?\bfrom\s"),
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
