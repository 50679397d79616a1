"""Verification of quotes: the exact place in a passage that a model's quote was taken from.

A quote is matched exactly, or else under a small and explicit equivalence (:data:`EQUIVALENT`,
and runs of whitespace). A match is refused where it would say something else than the source:
where it cuts a word or a number, or drops a sign, a comparison, a share or a negation.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import islice

from posology.text.quoting.edges import cuts_token, drops_comparison, drops_negation, sentence_at
from posology.types import UNREADABLE, Citation, FaultyQuote, QuoteFault

#: A quote of fewer words and numbers than this is no evidence, unless it is a whole sentence.
MIN_TOKENS = 3

#: Places of a quote that are looked at: of a text that repeats one word, each would be, at its own cost.
MOST_PLACES = 500

#: Characters that a quote and its source may exchange. Nothing else is folded: no case (but for
#: the first letter), no compatibility forms, so that 10² is never 102.
EQUIVALENT = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′ʼ`´", "'"),
        **dict.fromkeys("“”„‟″«»", '"'),
        **dict.fromkeys("‐‑‒–—−", "-"),
        "\u00b5": "\u03bc",  # micro sign, Greek mu
    }
)

#: Characters that are not seen and no writing needs: spaces of no width, and marks and overrides of the reading direction. Models
#: are not shown them. Joiners and soft hyphens are none of them: words of some languages need them.
UNSEEN = (
    "\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\U000e0000-\U000e007f"
)

_TOKEN = re.compile(r"[^\W_]+")
_UNSEEN = re.compile(f"[{UNSEEN}]+")
_WORD = re.compile(rf"[^\s{UNSEEN}]+")
_SPACE = re.compile(r"\s")
#: Units whose case is their meaning: mg is no Mg, m no M.
_CASED = frozenset({"mg", "mm", "m", "g", "s", "k", "t", "pa"})
_WRAPPINGS = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“", "`": "`"}
_LEADING_ELLIPSIS = re.compile(r"(?:\.{3,}|…|\[(?:\.{3}|…)\])\s*")
_ELLIPSES = ("...", "…", "[...]", "[…]")
#: Layers of wrapping (quotation marks, ellipses) that are taken off a quote.
_LAYERS = 3


class DropReason(StrEnum):
    """Reason why a quote is not a citation."""

    NOT_FOUND = "not_found"
    #: fewer than :data:`MIN_TOKENS` words, and not a whole sentence
    TOO_SHORT = "too_short"
    #: begins or ends within a word or a number, or parts a number from its % or exponent
    CUTS_TOKEN = "cuts_token"  # noqa: S105 - a word of a text, no secret
    #: leaves out the sign or the comparison in front of its first number, or behind its last, or the share in front of it
    DROPS_COMPARISON = "drops_comparison"
    #: leaves out a negation that it begins or ends beside, or that governs it ("no evidence that")
    DROPS_NEGATION = "drops_negation"
    #: holds a place that the reader of its file could not read, see :data:`~posology.types.UNREADABLE`
    UNREADABLE = "unreadable"
    #: names an unknown passage, and is in none or several of the given ones
    UNKNOWN_PASSAGE = "unknown_passage"
    #: names a sentence that was not shown
    UNKNOWN_SENTENCE = "unknown_sentence"
    #: a sentence that lacks the numbers, drugs or words of its claim, or negates what it states
    UNLIKE_THE_CLAIM = "unlike_the_claim"


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A range of a text, in code points."""

    #: first code point
    start: int
    #: one past the last code point
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Claimed:
    """A quote as a model gave it."""

    #: passage named by the model; ``None``: it named none
    passage_id: str | None
    quote: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Dropped:
    """A quote that failed verification."""

    claimed: Claimed
    reason: DropReason


@dataclass(frozen=True, kw_only=True, slots=True)
class Verified:
    """Result of verifying a reply's quotes."""

    #: in the order claimed, each span once
    citations: tuple[Citation, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    #: quotes that are not in the passage that the model named, cited from another or dropped
    faulty: tuple[FaultyQuote, ...] = ()
    #: sentences that a claim names and that do not bear it out
    refused: tuple[Citation, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Attributed:
    """The place of a quote."""

    found: Citation | DropReason
    #: passages that contain it, beside the named one; ``None``: they were not looked at, or hold a part of it
    elsewhere: tuple[str, ...] | None = None


def locate(quote: str, text: str) -> Span | DropReason:
    """Find the first place in ``text`` that ``quote`` faithfully repeats.

    Forgiven are: quotation marks around the quote, an ellipsis at either end, one final full
    stop too many or too few, the case of the first letter, and :data:`EQUIVALENT`. An ellipsis
    in the middle is not, unless the text has it.

    Args:
        quote: the quote as the model gave it.
        text: the passage.

    Returns:
        The span, such that ``text[span.start:span.end]`` is to be cited, or why there is none.
    """
    if _TOKEN.search(quote) is None:
        # marks alone: no place of them can be cited, and a long run of one is found at every place
        marks = quote.strip()
        return DropReason.TOO_SHORT if marks and marks in text else DropReason.NOT_FOUND
    # an exact place is an equivalent one, too, and is judged once
    objections: dict[Span, DropReason] = {}
    places = (span for wording in _wordings(quote) for span in _occurrences(wording, text))
    for span in islice(places, MOST_PLACES):
        if span in objections:
            continue
        objection = _objection(span, text)
        if objection is None:
            return span
        objections[span] = objection
    return next(iter(objections.values()), DropReason.NOT_FOUND)


def verify(claimed: Sequence[Claimed], texts: Mapping[str, str]) -> Verified:
    """Check quotes against the passages that they name.

    A quote that is not in its passage but in exactly one other is attributed to that one. A quote
    without a passage is searched in all, in the order given, and the first match counts.

    Args:
        claimed: the model's quotes.
        texts: the passages that the model was given, id to text.
    """
    citations: dict[tuple[str, int, int], Citation] = {}
    dropped: list[Dropped] = []
    faulty: dict[FaultyQuote, None] = {}
    for claim in claimed:
        place = _attribute(claim, texts)
        if (fault := _fault(claim, place, texts)) is not None:
            faulty[fault] = None
        found = place.found
        if isinstance(found, DropReason):
            dropped.append(Dropped(claimed=claim, reason=found))
            continue
        citations.setdefault((found.passage_id, found.start, found.end), found)
    return Verified(
        citations=tuple(citations.values()),
        dropped=tuple(dropped),
        faulty=tuple(faulty),
    )


def _fault(claim: Claimed, place: _Attributed, texts: Mapping[str, str]) -> FaultyQuote | None:
    """Return the fault of a quote that is not in its passage; ``None``: it has none, or the reason tells more."""
    if place.elsewhere is None or (claim.passage_id is None and place.elsewhere):
        return None
    if not _TOKEN.search(claim.quote):
        return None
    return FaultyQuote(
        fault=QuoteFault.MISATTRIBUTED if place.elsewhere else QuoteFault.INVENTED,
        quote=claim.quote,
        named=claim.passage_id if claim.passage_id in texts else None,
        passages=place.elsewhere,
    )


def _attribute(claim: Claimed, texts: Mapping[str, str]) -> _Attributed:
    named = claim.passage_id
    if named is not None and named in texts:
        located = locate(claim.quote, texts[named])
        if isinstance(located, Span):
            return _Attributed(found=_cite(named, located, texts))
        if located is not DropReason.NOT_FOUND:
            return _Attributed(found=located)
    reasons: list[DropReason] = []
    places: list[tuple[str, Span]] = []
    for passage_id, text in texts.items():
        if passage_id == named:
            continue
        located = locate(claim.quote, text)
        if isinstance(located, Span):
            places.append((passage_id, located))
        elif located is not DropReason.NOT_FOUND:
            reasons.append(located)
    elsewhere = None if reasons and not places else tuple(passage_id for passage_id, _ in places)
    if places and (named is None or len(places) == 1):
        passage_id, span = places[0]
        return _Attributed(found=_cite(passage_id, span, texts), elsewhere=elsewhere)
    if named is not None:
        reason = DropReason.NOT_FOUND if named in texts else DropReason.UNKNOWN_PASSAGE
    else:
        reason = reasons[0] if reasons else DropReason.NOT_FOUND
    return _Attributed(found=reason, elsewhere=elsewhere)


def _cite(passage_id: str, span: Span, texts: Mapping[str, str]) -> Citation:
    quote = texts[passage_id][span.start : span.end]
    return Citation(passage_id=passage_id, start=span.start, end=span.end, quote=quote)


def _wordings(quote: str) -> Iterator[str]:
    """Yield the quote as given and then without its wrapping, most literal first."""
    bare = quote.strip()
    seen: set[str] = set()
    for _ in range(_LAYERS + 1):
        shorter = bare if bare.endswith("..") else bare.removesuffix(".").rstrip()
        for wording in (bare, shorter, _swap_first(bare), _swap_first(shorter)):
            if wording and wording not in seen:
                seen.add(wording)
                yield wording
        bare = _unwrap(bare)


def _unwrap(quote: str) -> str:
    """``quote`` without one layer of quotation marks or ellipses."""
    bare = quote
    if ellipsis := _LEADING_ELLIPSIS.match(bare):
        bare = bare[ellipsis.end() :]
    for ending in _ELLIPSES:
        bare = bare.removesuffix(ending).rstrip()
    closing = _WRAPPINGS.get(bare[:1])
    inner = bare.removesuffix(".") if closing and bare.endswith(f"{closing}.") else bare
    if closing and len(inner) > 1 and inner.endswith(closing):
        bare = inner[1:-1]
    return bare.strip()


def _swap_first(quote: str) -> str:
    """``quote`` with the first letter's case turned, if it begins with an ordinary word."""
    word = _TOKEN.match(quote)
    if word is None or not word[0].isalpha() or not (word[0][1:] or "a").islower():
        return quote
    if word[0].lower() in _CASED:
        return quote
    swapped = quote[0].swapcase()
    return swapped + quote[1:] if len(swapped) == 1 else quote


def _occurrences(wording: str, text: str) -> Iterator[Span]:
    """Yield every place where ``text`` repeats ``wording``: exact ones first, then equivalent ones."""
    for at in _finds(wording, text):
        yield Span(start=at, end=at + len(wording))
    even, folded = _fold(text), _fold(wording).text
    for at in _finds(folded, even.text):
        yield Span(start=even.origin(at), end=even.origin(at + len(folded) - 1) + 1)


def _finds(wanted: str, text: str) -> Iterator[int]:
    """Yield every offset of ``wanted``. ``str.find`` takes time in proportion to the text, whatever the two repeat."""
    at = text.find(wanted)
    while at >= 0:
        yield at
        at = text.find(wanted, at + 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Folded:
    """A text whose runs of whitespace are one space each, without :data:`UNSEEN`, folded by :data:`EQUIVALENT`."""

    text: str
    #: offset of each word, or part of one, in it, ascending
    starts: array[int]
    #: offset of each word in the text itself
    origins: array[int]

    def origin(self, at: int) -> int:
        """Return the offset in the text itself of the character at ``at``, which is of a word."""
        word = bisect_right(self.starts, at) - 1
        return self.origins[word] + at - self.starts[word]


# One reply's quotes are looked for in the same few passages.
@lru_cache(maxsize=16)
def _fold(text: str) -> _Folded:
    parts: list[str] = []
    starts, origins = array("Q"), array("Q")
    end = last = 0
    even = text.translate(EQUIVALENT)
    for word in _WORD.finditer(even):
        # what is not seen parts no word
        if parts and _SPACE.search(even, last, word.start()):
            parts.append(" ")
            end += 1
        parts.append(word[0])
        starts.append(end)
        origins.append(word.start())
        end, last = end + len(word[0]), word.end()
    return _Folded(text="".join(parts), starts=starts, origins=origins)


@lru_cache(maxsize=16)
def _seen(text: str) -> str:
    return _UNSEEN.sub("", text)


def _objection(span: Span, text: str) -> DropReason | None:
    """Why this occurrence must not be cited; ``None`` if it may."""
    plain = _seen(text)
    if plain != text:
        # a word or a negation is none the less one for what is not seen within it
        start = len(_UNSEEN.sub("", text[: span.start]))
        span = Span(start=start, end=start + len(_UNSEEN.sub("", text[span.start : span.end])))
        text = plain
    if not is_readable(text, span):
        return DropReason.UNREADABLE
    if cuts_token(text, span.start, span.end):
        return DropReason.CUTS_TOKEN
    if drops_comparison(text, span.start, span.end):
        return DropReason.DROPS_COMPARISON
    if drops_negation(text, span.start, span.end):
        return DropReason.DROPS_NEGATION
    tokens = islice(_TOKEN.finditer(text, span.start, span.end), MIN_TOKENS)
    if sum(1 for _ in tokens) < MIN_TOKENS and not _is_sentence(span, text):
        return DropReason.TOO_SHORT
    return None


def is_readable(text: str, span: Span) -> bool:
    """Return whether the sentences that a span touches were read whole.

    Args:
        text: the passage.
        span: of words of it.
    """
    if UNREADABLE not in text:
        return True
    first, last = sentence_at(text, span.start), sentence_at(text, span.end - 1)
    return text.find(UNREADABLE, first.start, last.end) < 0


def _is_sentence(span: Span, text: str) -> bool:
    """Return whether the span is a whole sentence, with or without its final stop."""
    if not _TOKEN.search(text, span.start, span.end):
        return False
    sentence = sentence_at(text, span.start)
    stop = text[sentence.end - 1] == "."
    return span.start == sentence.start and span.end in {sentence.end, sentence.end - stop}
