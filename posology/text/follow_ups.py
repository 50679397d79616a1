"""Questions that continue a conversation ("And in children?"), completed by the question before them. No model is called.

A question stands alone unless its words show otherwise: it opens with a conjunction, points back before it names anything,
or is a fragment. One that does not is joined to the last one that does, whose words name the subject.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from posology.query import MAX_QUESTION
from posology.text._lexicon import words

#: questions that one may complete, the newest: what is further back is seldom meant
_EARLIER = 3
#: words that name something, of which a question that stands alone has as many
_NAMES = 2
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
#: openings that continue what was said
_CONTINUES = re.compile(
    r"\W*(?:and|but|or|also|then|otherwise|instead|(?:what|how) about|what if|how so|how come|compared (?:with|to) th(?:at|is|ese|ose))\b",
    re.IGNORECASE,
)
#: words that point back, or may: "it" and "that" also stand for what follows ("Is it safe to …", "the risk that …")
_POINTS = re.compile(
    r"\b(?:they|them|theirs?|its|these|those|such(?! as\b)|he|she|his|her|the (?:same|former|latter|others?)|(?:this|that)(?= \w+\W*$|\W*$)|"
    r"(?:(?<=does )|(?<=did )|(?<=is )|(?<=was )|(?<=of )|(?<=for )|(?<=with )|(?<=in )|(?<=to )|(?<=after )|(?<=than ))(?:this|that)|"
    r"(?:then|instead|otherwise|too|as well)(?=\W*$)|it(?! (?:(?:\w+ly )?\w+ (?:to|that|for|if|whether)|take|make|matter)s?\b))\b",
    re.IGNORECASE,
)
#: "What is sepsis?", "How is gout treated?": a name without an article
_DEFINES = re.compile(
    r"\W*(?:(?:what|how|when|why) (?:is|are|do|does|can|should)|define|explain) (?!the\b|an?\b|its?\b|th(?:is|at|ese|ose)\b)[^\W_]{4,}[\w -]*\W*$",
    re.IGNORECASE,
)
#: words that name nothing, and words of every question about evidence and care
_EMPTY = words(
    "a an and any are as at be been but by can could did do does doing done for from had has have how if in into is it its "
    "may might must of on or should than that the then there these they this those to was were what when where whether "
    "which who whom whose why will with within without would about above after also before below between during up until "
    "not so no only much many more most long often other others else again still even late early soon fast first second one "
    "two three four i we you me us my our your trial trials study studies evidence data results research review reviews "
    "show shows showed find found finding findings say says said large larger very small randomised randomized controlled "
    "compare compares compared comparison better worse best different difference dose doses dosed dosing drug drugs "
    "medicine treatment treatments treat treated therapy given give gives giving used use uses using taken take takes start "
    "started stop stopped stopping begin last lasts effect effects side benefit benefits harm harms risk risks safe safety "
    "sign signs symptom symptoms cause causes happen happens patients patient people person adults adult children child "
    "women men elderly older alternatives alternative options option target targets endpoint maximum minimum daily day days "
    "week weeks month months hour hours minute minutes year years die died dies death deaths reliable recommended needed "
    "necessary required work works help helps offered avoided case cases group groups level levels amount number rate"
)


def stands_alone(question: str) -> bool:
    """Return whether a question names what it is about, so that a search for it alone makes sense."""
    if _DEFINES.match(question):
        return True
    if _CONTINUES.match(question) or _named(question) < _NAMES:
        return False
    points = _POINTS.search(question)
    if points is None:
        return True
    ends = not _WORD.search(question, points.end())
    return _named(question[: points.start()]) >= (_NAMES * 2 if ends else 1)


def continued(questions: Sequence[str]) -> Sequence[str]:
    """Return the last question of a conversation with those before it that it continues.

    Args:
        questions: questions of one conversation, oldest first, at least one.
    """
    *earlier, last = (one.strip() for one in questions)
    parts = [last]
    for before in reversed(earlier[-_EARLIER:]):
        longer = [before, *parts]
        if stands_alone(parts[0]) or len(" ".join(longer)) > MAX_QUESTION:
            break
        parts = longer
    return parts


def _named(text: str) -> int:
    """Return how many words of a text name something."""
    return sum(one.casefold() not in _EMPTY for one in _WORD.findall(text))
