"""Lines into running text: words that were divided at line ends are put together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from posology.text._lexicon import words

#: words that are remembered, to know how a word is written elsewhere
KNOWN = 50_000

_HYPHENS = "-\u2010"
_LETTERS = re.compile(r"[^\W\d_]*")
#: the rest of a word; "19" of "COVID-19" and the Greek letter of "TNF-α" belong to a name, whose hyphen stays
_GOES_ON = re.compile(r"([^\W\d_]{2,}|\d|[α-ωΑ-Ω](?![^\W\d_]))")
_WORD = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*")

#: what keeps its hyphen before or after it
_BEFORE = words(
    "non self placebo double single triple well long short high low post pre anti follow meta cost dose "
    "age sex time open blind half one two three four five six first second third health evidence case all "
    "cross head quality risk x beta alpha gamma"
)
_AFTER = words(
    "controlled related based blind blinded up term dose treated induced specific free dependent "
    "associated matched label year years old centre center like type effective reported rated risk line "
    "day week month adjusted analysis sectional control effect effectiveness response"
)


def learn(lines: Iterable[str], known: Counter[str]) -> None:
    """Add the words of lines to ``known``, up to :data:`KNOWN` of them."""
    for line in lines:
        if len(known) >= KNOWN:
            return
        # the first and the last may be halves
        known.update(word.casefold() for word in _WORD.findall(line)[1:-1])


def joined(lines: Sequence[str], known: Mapping[str, int]) -> tuple[str, list[int]]:
    """Return the lines as one paragraph, and where each begins in it, shape ``(len(lines),)``.

    A hyphen at a line's end goes if the word is written without it elsewhere, and stays if it is written with it; where
    the text does not tell, it stays with words that are mostly written so, such as ``placebo-controlled``, and goes
    with others.

    Args:
        lines: without white space at their ends.
        known: how often each word is in the text, see :func:`learn`.
    """
    out: list[str] = []
    starts: list[int] = []
    length = 0
    for line in lines:
        divided = _divided(out[-1]) if out else ""
        if divided and (rest := _GOES_ON.match(line)):
            if _goes(divided, rest[1], known):
                out[-1] = out[-1][:-1]
                length -= 1
        elif out:
            out.append(" ")
            length += 1
        starts.append(length)
        out.append(line)
        length += len(line)
    return "".join(out), starts


def _divided(line: str) -> str:
    """Return the letters before the hyphen that ends a line; empty unless there are two or more."""
    if line[-1:] not in _HYPHENS:
        return ""
    # from the end: of a long line every beginning would be tried
    letters = _LETTERS.match(line[-2::-1])
    return letters[0][::-1] if letters is not None and len(letters[0]) > 1 else ""


def _goes(before: str, rest: str, known: Mapping[str, int]) -> bool:
    if not rest[0].islower() or len(rest) == 1:
        return False
    first, second = before.casefold(), rest.casefold()
    whole, hyphened = known.get(first + second, 0), known.get(f"{first}-{second}", 0)
    if whole != hyphened:
        return whole > hyphened
    return first not in _BEFORE and second not in _AFTER
