"""Comparisons before and after a number: ``≥``, ``> or =``, "at least", "or older", ``65+``."""

from __future__ import annotations

import re

from posology.text.figures.numerals import ANY

_LESS = r"(?:less|fewer|lower|smaller|shorter|younger|earlier)"
_MORE = r"(?:more|greater|higher|larger|longer|older|later)"
_EQUAL = r"\s+or\s+equal(?:\s+to)?"
_BELOW = rf"(?:{_LESS}\s+than|below|under)"
_ABOVE = rf"(?:{_MORE}\s+than|above|over|exceed(?:s|ed|ing)?|in\s+excess\s+of)"
_NOT = r"(?:no|not|never|without)\s+"
#: comparison and what may stand between it and its number: "at least a 5% rise", "over the age of 65"
_BEFORE = re.compile(
    rf"(?:(?P<le>[≤≦⩽]|<\s?=|=\s?<|<\s?or\s?(?:=|equal\s?to))|(?P<ge>[≥≧⩾]|>\s?=|=\s?>|>\s?or\s?(?:=|equal\s?to))"
    r"|(?P<ne>≠|!=|<>)|(?P<lt><)|(?P<gt>(?<![-–—])>)"
    r"|\b(?:"
    rf"(?P<no_more>{_NOT}{_ABOVE}|(?:less|fewer|lower|smaller)(?:\s+than)?{_EQUAL}(?:\s+than)?"
    rf"|equal(?:\s+to)?\s+or\s+{_BELOW}|at\s+most|up\s+to|(?:a\s+)?maximum\s+of)"
    rf"|(?P<no_less>{_NOT}{_BELOW}|(?:more|greater|higher|larger)(?:\s+than)?{_EQUAL}(?:\s+than)?"
    rf"|equal(?:\s+to)?\s+or\s+{_ABOVE}|at\s+(?:the\s+very\s+)?least|(?:a\s+)?minimum\s+of)"
    rf"|(?P<below>{_BELOW})|(?P<above>{_ABOVE}))\b"
    r"(?:\s+(?:an?|(?:the\s+)?ages?(?:\s+of)?|of|about|approximately|around|a\s+total\s+of))*)"
    rf"[\s($€£¥]*\+?(?=[-−–]?\s?[.·]?\d|[½¼¾⅐-⅞]|(?:{ANY})\b)"
)
_SIGNS = {
    "le": "≤",
    "no_more": "≤",
    "ge": "≥",
    "no_less": "≥",
    "ne": "≠",
    "lt": "<",
    "below": "<",
    "gt": ">",
    "above": ">",
}
#: whom "over 65 years" is said of: "over 12 weeks" is "during 12 weeks"
_PEOPLE = re.compile(
    r"\b(?:aged?|ages|patients|people|persons|individuals|subjects|participants|adults|men|women|those|children|anyone)"
    r"\s+(?:who\s+)?(?:(?:are|were)\s+)?(?:aged\s+)?\Z"
)
_AFTER = re.compile(
    r"\+(?![\w/(±-])"
    r"|[\s-]?(?:(?:of\s(?:age|gestation)|old)\b)?[\s-]?,?\s?\(?(?:"
    r"or[\s-]+(?:(?P<ge>more|older|greater|higher|above|over|longer|larger|later|beyond)"
    r"|(?P<le>less|fewer|younger|lower|below|under|shorter|smaller|earlier))"
    r"|and[\s-]+(?:(?P<and_ge>older|above|over|beyond|up|upwards?)|(?P<and_le>younger|below|under))"
    rf")(?![^\W_])(?!\s+(?:(?:than|the|an?|{ANY})\b|[$€£<>≤≥.·−–-]*\d))",
    re.IGNORECASE,
)


def before(text: str) -> dict[int, tuple[str, int]]:
    """Return the comparisons of a folded text in lower case with their first code points, by the first of their numbers."""
    found = {}
    for match in _BEFORE.finditer(text):
        vague = match[0].startswith("over") and match["above"] and "age" not in match[0]
        if vague and not _over(text, match):
            continue
        sign = _SIGNS[match.lastgroup or ""]
        found[match.end()] = (sign, match.start())
    return found


def after(text: str, at: int) -> tuple[str, int]:
    """Return the comparison that follows a number or its unit, and its end; without one, nothing and ``at``."""
    found = _AFTER.match(text, at)
    if found is None:
        return "", at
    return ("≤" if found["le"] or found["and_le"] else "≥"), found.end()


def _over(text: str, match: re.Match[str]) -> bool:
    """Return whether "over" compares, and is not a word of time or place."""
    if _PEOPLE.search(text, max(0, match.start() - 40), match.start()):
        return True
    return (
        re.match(r"[\d.,·]+\s?(?:%|per\s?cent|[mµn]?g\b|mm)", text[match.end() : match.end() + 20])
        is not None
    )
