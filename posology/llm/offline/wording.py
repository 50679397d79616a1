"""Whether a sentence speaks for or against a treatment, told by its wording alone.

A heuristic for a reader that understands nothing: words of benefit and of harm, rises and falls of what
is bad or good, and negations that turn them. It takes no side where words of both kinds stand, or
words that only suppose: a contradiction that it misses is better than one that it makes up. How often
it is right: ``docs/concepts/briefcontext.md``.
"""

from __future__ import annotations

import re
from enum import StrEnum

#: words from a negation to what it turns, at most
REACH = 5
#: words between a rise or fall and what rises or falls, at most
NEAR = 7
#: letters of a word's ending that may differ, at most
ENDING = 3

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_NEGATION = re.compile(
    r"no|not|never|without|neither|nor|none|cannot|\w+n['’]t|hardly|fail(?:s|ed)?|lack(?:s|ed)?|"
    r"unlikely|insufficient|absence"
)
_GOOD_WORD = re.compile(
    r"benefi\w+|effective(?:ly|ness)?|efficac\w+|protect\w*|prevent(?:s|ed|ing|ion)?|"
    r"recommended|safe|safely|worthwhile|helps?|helped|helpful"
)
_BAD_WORD = re.compile(
    r"harm\w*|ineffective\w*|contraindicat\w+|danger\w*|unsafe|detriment\w+|deleterious|"
    r"worsen\w*|useless|futile"
)
_FALL = re.compile(
    r"reduc\w+|lower(?:s|ed|ing)?|decreas\w+|fell|falls?|fallen|halv\w+|declin\w+|diminish\w+|"
    r"fewer|less|shorten\w*|alleviat\w+|attenuat\w+"
)
_RISE = re.compile(
    r"increas\w+|rais(?:e|es|ed|ing)|rose|rises?|risen|higher|more|greater|excess|doubl\w+|commoner|"
    r"elevat\w+|prolong\w*|longer|improv\w+|better"
)
_ILL = re.compile(
    r"mortality|deaths?|died|strokes?|infarctions?|risks?|relapses?|recurrences?|exacerbations?|"
    r"admissions?|hospitali[sz]ations?|infections?|bleeding|pain|severity|symptoms?|complications?|"
    r"incidence|transmission|miscarriages?|seizures?|disability|fractures?|odds|hazard|likelihood"
)
_WELL = re.compile(r"survival|survive\w*|life|recovery|remission|function|outcomes?|cures?|quality")
#: what a negation denies by itself: "no difference", "did not differ", "not associated with"
_DENIED = re.compile(
    r"differ|differs|differences?|different|effects?|affect\w*|association|associated|evidence|"
    r"support(?:s|ed)?|impact|influence\w*|advantages?|reason|reproduced|role|correlat\w+|significan\w+"
)
#: what is done to some end is not shown to reach it: "treated to reduce", but "shown to reduce"
_SHOWN = re.compile(r"shown|found|proven?|known|demonstrated|failed|fails|fail")
#: who writes so does not assert
_HEDGE = re.compile(
    r"may|might|could|would|possibl[ey]|perhaps|hypothesi[sz]\w*|plausibl[ey]|potential(?:ly)?|"
    r"speculat\w+|presumabl[ey]|whether|if|aims?|aimed|hoped|propos\w+|seem(?:s|ed)?|appear(?:s|ed)?|"
    r"(?:non|in)significan\w+"
)
#: of no content; what a question is about is in its other words
_EMPTY = frozenset(
    re.findall(
        r"\w+",
        "a about after all am an and any are as at be been before being both but by can could did do "
        "does down each few for from had has have having he her his how i if in into is it its just "
        "like may me more most must my no nor not now of off on once only or other our out over own "
        "patient patients people person same she should so some someone still such than that the "
        "their them then there these they this those through to too under until up us use used using "
        "very was we were what when where whether which while who whom whose why will with without "
        "woman women man men would you your",
    )
)
_PARTS = re.compile(r"(?<=[.?!,;:])\s+")
_VERB_FIRST = re.compile(
    r"(?:and |or |but )?(?:do|does|did|is|are|was|were|has|have|can|could|should|will|would|must)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"\s*(?:(?:in|for|on|at|by|with|to|of|from|about) )?(?:what|which|who|whom|whose|when|where|why|how)\b",
    re.IGNORECASE,
)


class Stance(StrEnum):
    """Direction of a treatment's effect by a sentence's wording."""

    FOR = "for"
    AGAINST = "against"


def stance(sentence: str) -> Stance | None:
    """The side that a sentence's words take; ``None`` where they take none, both, or only perhaps."""
    words = [match[0].lower() for match in _WORD.finditer(sentence)]
    if any(_HEDGE.fullmatch(word) for word in words):
        return None
    said = [one for i in range(len(words)) if (one := _says(words, i)) is not None]
    denied = [good for i, good in said if _negated(words, i)]
    told = {good for i, good in said if not _negated(words, i)}
    if False in denied or len(told) > 1:
        # "did not raise mortality" praises nothing and blames nothing
        return None
    if True in denied or (not said and _denies(words)):
        return Stance.AGAINST if True not in told else None
    if not told or _denies(words):
        return None
    return Stance.FOR if True in told else Stance.AGAINST


def asks_for_a_side(question: str) -> bool:
    """Whether a question can be answered by yes or no: no other has two sides."""
    return any(_VERB_FIRST.match(part) for part in _PARTS.split(question))


def is_question(text: str) -> bool:
    """Whether a text asks something, rather than states it."""
    return "?" in text or asks_for_a_side(text) or _ASKS.match(text) is not None


def coverage(question: str, text: str) -> float:
    """Return the share of a question's content words that a text has, without endings; 0 to 1."""
    asked = {
        word
        for match in _WORD.finditer(question)
        if (word := match[0].lower()) not in _EMPTY
        and not any(cue.fullmatch(word) for cue in (_GOOD_WORD, _BAD_WORD, _FALL, _RISE))
    }
    if not asked:
        return 0.0
    has = [match[0].lower() for match in _WORD.finditer(text)]
    return sum(any(_same(word, other) for other in has) for word in asked) / len(asked)


def _same(one: str, other: str) -> bool:
    stem = max(len(one), len(other)) - ENDING
    return one == other or (stem > ENDING and one[:stem] == other[:stem])


def _says(words: list[str], i: int) -> tuple[int, bool] | None:
    """Whether the word at ``i`` tells of something good, with its place; ``None`` if of nothing."""
    word, before = words[i], words[max(0, i - 2) : i]
    if before and (
        # "50 years or more" tells of no rise
        before[-1] == "or" or (before[-1] == "to" and not _SHOWN.fullmatch(before[0]))
    ):
        return None
    if _GOOD_WORD.fullmatch(word):
        return i, True
    if _BAD_WORD.fullmatch(word):
        return i, False
    falls, rises = _FALL.fullmatch(word), _RISE.fullmatch(word)
    if not falls and not rises:
        return None
    if word.startswith(("improv", "better")):
        return i, True
    around = words[max(0, i - NEAR) : i + NEAR + 1]
    ill = any(_ILL.fullmatch(w) for w in around)
    well = any(_WELL.fullmatch(w) for w in around)
    if ill == well:
        return None
    return i, bool(falls) if ill else bool(rises)


def _denies(words: list[str]) -> bool:
    # "patients without evidence of cancer" denies nothing
    return any(
        _DENIED.fullmatch(word)
        and any(_NEGATION.fullmatch(w) and w != "without" for w in words[max(0, i - REACH) : i])
        for i, word in enumerate(words)
    )


def _negated(words: list[str], i: int) -> bool:
    return any(_NEGATION.fullmatch(word) for word in words[max(0, i - REACH) : i])
