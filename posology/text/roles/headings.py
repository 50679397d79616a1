"""Headings of structured abstracts and of parts of articles, and the roles that they leave to their sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from posology.types import Sentence, SentenceRole

_WORDS = {
    SentenceRole.BACKGROUND: "background introduction context rationale problem",
    SentenceRole.AIM: "objective objectives aim aims purpose purposes goal goals object hypothesis hypotheses question questions",
    SentenceRole.METHODS: "method methods methodology material materials design setting settings patients participants "
    "subjects animals intervention interventions measure measures measurements procedure procedures population sample "
    "source sources selection extraction strategy criteria collection acquisition analysis analyses identification approach",
    SentenceRole.RESULTS: "result results finding findings synthesis",
    SentenceRole.CONCLUSION: "conclusion conclusions interpretation implication implications discussion significance "
    "relevance recommendation recommendations comment",
}
_ROLE_OF = {word: role for role, words in _WORDS.items() for word in words.split()}
#: words of headings whose sections have none of these roles, whatever else they name
_BESIDE = (
    "registration registrations identifier number funding sponsorship sponsors disclosures ethics ethical dissemination "
    "supplementary isrctn keywords"
)
#: and those whose sections have none if they name nothing else
_OTHER = "abstract summary evidence level limitations editorial commentary highlights options values validation"
_NO_ROLE = frozenset(_BESIDE.split())
_NO_SECTION = _NO_ROLE.union(_OTHER.split())
#: authors write the aim under BACKGROUND, and the background under PURPOSE
_OPENING = frozenset({SentenceRole.BACKGROUND, SentenceRole.AIM})
#: upper case after a sentence, also glued to it, or capitalised at the beginning of a line
_HEADING = re.compile(
    r"(?:^|(?<=[.?!)\];\"”\u2019])|(?<=\s))(?P<upper>[A-Z][A-Z/&,()\- ]{2,60}):\s*"
    r"|^(?P<line>[A-Z][a-z]+(?:[/&, ]+[a-z]+){0,4}):\s+",
    re.MULTILINE,
)
_WORD = re.compile(r"[a-z]+")
#: words of a section that only concludes, unlike a discussion
_CONCLUDING = ({"conclusion"}, {"conclusions"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Heading:
    """A heading within a text."""

    #: its first code point
    start: int
    #: the first code point of what stands under it
    end: int
    #: roles that its sentences may have, more than one after "METHODS AND RESULTS"; empty: it names none of them
    roles: frozenset[SentenceRole]


def named_roles(heading: str) -> frozenset[SentenceRole]:
    """Return the roles that the words of a heading name; empty: none."""
    words = _WORD.findall(heading.lower())
    if _NO_ROLE.intersection(words):
        return frozenset()
    return frozenset(_ROLE_OF[word] for word in words if word in _ROLE_OF)


def allowed(named: frozenset[SentenceRole]) -> frozenset[SentenceRole]:
    """Return the roles that sentences may have under a heading that names these."""
    return named | _OPENING if named & _OPENING else named


def headings(text: str) -> tuple[Heading, ...]:
    """Return the headings in a text, in order; words in capitals that are no heading known here are left out."""
    found = []
    for match in _HEADING.finditer(text):
        words = _WORD.findall(match[0].lower())
        roles = named_roles(match[0])
        if roles or _NO_SECTION.intersection(words):
            found.append(Heading(start=match.start(), end=match.end(), roles=roles))
    return tuple(found)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stated:
    """Restriction of a sentence's role by headings."""

    #: its first code point behind a heading at its beginning
    start: int
    #: roles that headings leave to it; empty: none restricts it
    allowed: frozenset[SentenceRole]


def stated(
    text: str, sentences: Sequence[Sentence], section: str | None = None
) -> tuple[Stated, ...]:
    """Return what headings say of each sentence.

    Args:
        text: a passage's.
        sentences: of the text, in order.
        section: heading of the part of an article that the passage is, e.g. ``Methods > Randomisation``. A discussion
            restricts nothing: articles repeat there all that came before. "Conclusion" alone has results and conclusions.
    """
    heading = (section or "").partition(">")[0]
    named = named_roles(heading)
    under: frozenset[SentenceRole] = allowed(named)
    if set(_WORD.findall(heading.lower())) in _CONCLUDING:
        under = frozenset({SentenceRole.RESULTS, SentenceRole.CONCLUSION})
    elif SentenceRole.CONCLUSION in named:
        under = frozenset()
    marks = headings(text)
    found = []
    place = 0
    for sentence in sentences:
        start = sentence.start
        # a heading glued to a sentence begins within it, and holds from the next one on
        while place < len(marks) and marks[place].start <= sentence.start:
            under = allowed(marks[place].roles)
            start = max(start, min(marks[place].end, sentence.end))
            place += 1
        found.append(Stated(start=start, allowed=under))
    return tuple(found)
