"""Fields that an appraisal of a trial needs: what it says of bias and precision (RoB 2 domains, GRADE), never a rating."""

from __future__ import annotations

from posology.text.figures import COUNT
from posology.types import SentenceRole
from posology.types.tables import Cue, Field, FieldKind
from strategies.tables.presets import DONE, PEOPLE, PICO, PRIMARY, STUDIED

_FOUND = frozenset({SentenceRole.RESULTS, SentenceRole.CONCLUSION})
_REUSED = {one.name: one for one in PICO}

#: randomisation, concealment, blinding, numbers randomised and analysed, attrition, analysis, interval and funding of a trial
APPRAISAL: tuple[Field, ...] = (
    Field(
        name="randomisation",
        question="How was the random allocation sequence generated?",
        roles=DONE,
        cues=(
            Cue(
                pattern=r"(?i)\b(?:computer[- ](?:generated|based)\b[^.;,]{0,80}|(?:table of random numbers|random[- ]numbers? (?:table|generator))s?|permuted[- ]blocks?\b[^.;,]{0,60}|(?:block|stratified) randomi[sz]ation\b[^.;,]{0,60}|coin toss(?:ing)?|drawing (?:of )?lots)"
            ),
            Cue(
                pattern=r"(?i)\brandomi[sz]ed\b[^.;]{0,60}?\b(?:(?:in (?:blocks|a \d+\s?:\s?\d+ ratio)|stratified by|using)\b[^.;]{3,120})"
            ),
        ),
    ),
    Field(
        name="concealment",
        question="How was the allocation concealed from those who enrolled participants?",
        roles=DONE,
        cues=(
            Cue(
                pattern=r"(?i)\b(?:(?:sequentially numbered,?\s+|numbered,?\s+)?(?:sealed|opaque)\b[^.;]{0,40}\benvelopes?|(?:interactive (?:voice|web)|telephone|web-based)[- ]\w{1,20} (?:system|service)|central(?:i[sz]ed|ly)?\b[^.;]{0,30}\brandomi[sz](?:ation|ed))\b"
            ),
            Cue(pattern=r"(?i)\ballocation (?:was )?(?:concealed|concealment)\b"),
        ),
    ),
    Field(
        name="blinding",
        question="Who was blinded to the allocation, of participants, care givers and outcome assessors?",
        roles=DONE,
        cues=(
            Cue(
                pattern=r"(?i)\b(?:(?:single|double|triple|assessor|observer|investigator)[- ](?:blind(?:ed)?|mask(?:ed)?)|open[- ]label|unblinded)\b"
            ),
            Cue(pattern=r"(?i)\b(?:blinded|masked|unaware) (?:to|of)\b"),
        ),
    ),
    _REUSED["n"],
    Field(
        name="n_analysed",
        question="How many participants completed the study or were analysed for the primary outcome?",
        kind=FieldKind.NUMBER,
        roles=STUDIED,
        cues=(
            Cue(
                pattern=rf"(?i)\b(?P<value>{COUNT})\s+(?:[\w-]{{1,30}}\s+){{0,3}}?(?:{PEOPLE})?\s*(?:who\s+)?(?:completed\s+(?:the|all)\b|(?:were|was)\s+(?:included\s+in\s+the\s+(?:[\w-]{{1,30}}\s+){{0,3}}analys|analy[sz]ed))"
            ),
        ),
    ),
    Field(
        name="attrition",
        question="How many participants withdrew, were lost to follow-up or were left out of the analysis, in which group and why?",
        roles=STUDIED,
        cues=(
            Cue(pattern=r"(?i)\blost to follow[- ]?up\b|\bloss to follow[- ]?up\b"),
            Cue(
                pattern=r"(?i)\b\d[^.;]{0,120}\b(?:withdrew|dropped out|drop-?outs?|discontinued|did not complete)\b|\b(?:withdrew|dropped out|drop-?outs?|discontinued|did not complete)\b[^.;]{0,120}\d"
            ),
        ),
    ),
    Field(
        name="analysis",
        question="Were participants analysed in the groups that they were allocated to?",
        roles=STUDIED,
        cues=(
            Cue(
                pattern=r"(?i)\b(?:(?:modified\s+)?intent(?:ion)?[- ]to[- ]treat|per[- ]protocol|as[- ]treated)\b"
            ),
        ),
    ),
    Field(
        name="interval",
        question="What is the estimate of the effect on the primary outcome, with its confidence interval?",
        roles=_FOUND,
        cues=(
            Cue(
                pattern=rf"(?i)\b{PRIMARY}\b.{{0,400}}(?:\b9\d\s?%\s?(?:CI|confidence interval)|confidence interval)"
            ),
        ),
    ),
    _REUSED["funding"],
)
