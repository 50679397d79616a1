"""Edges of a quotation: whether cutting there changes the meaning."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import lru_cache
from itertools import pairwise
from operator import attrgetter

from posology.text._lexicon import words
from posology.text.figures import Figure, figures
from posology.text.sentences import split
from posology.types import Sentence

# One reply's quotes are checked against the same few passages, at many places each.
_sentences = lru_cache(maxsize=64)(split)

#: A quote must not begin within this many words after one of :data:`NEGATIONS`, without those that carry it on.
NEGATION_REACH = 3

#: Dropping one of these reverses the meaning ("did not | reduce mortality"). Words that end in
#: "n't" count too; "not only" does not.
NEGATIONS = words(
    "not no never without neither nor cannot none nobody nothing hardly unable fail fails failed "
    "failing failure lack lacks lacked lacking absence unlikely"
)

#: Words that lie between a negation and what it denies: "was not found to be | effective".
_CARRYING = words(
    "be been being to found shown considered thought seem seems seemed appear appears appeared proven proved known "
    "expected believed deemed judged have has had also significantly statistically clinically yet far as any"
)
_EXCEPT = re.compile(
    r"\s*+(?:[,(]\s*+)?\(?(?:unless|except(?:ing)?(?!\w)|excluding|with the exception)\b",
    re.IGNORECASE,
)
_NON = re.compile(r"(?<![^\W_])non[\s‐‑-]+\Z", re.IGNORECASE)

#: Words that, like :data:`NEGATIONS`, take back the clause that "that" or "whether" begins.
DOUBTS = words(
    "unclear unknown uncertain doubtful improbable implausible impossible questionable "
    "insufficient inconclusive little refuted refutes disproved disproven"
)
#: one of both, or an "n't", anywhere: far cheaper to look for than the sentences
_DENIAL = re.compile(
    rf"(?<![^\W\d_])(?:{'|'.join(sorted(NEGATIONS | DOUBTS))})(?![^\W\d_])|n['’]t", re.IGNORECASE
)
#: From a negation to the word that begins what it takes back: "no convincing evidence that".
GOVERNING_REACH = 6
_CLAUSE_OPENERS = words("that whether if")
_CONTRAST_WORDS = words("but whereas yet although though while however")
#: words before "of" that negate what follows if there is none of it
_EVIDENCE = words("neither none evidence sign signs indication indications suggestion proof")

_DASHES = "-‐‑‒–−"
_MINUS = frozenset((*_DASHES, "minus"))
_COMPARISONS = "<>≤≥±~≈∼≦≧⩽⩾≪≫∓+×" + _DASHES
_COMPARING_WORDS = re.compile(
    r"\b(?:than|at least|at most|up to|below|above|under|over|exceeding|minus)\s+\Z", re.IGNORECASE
)
_NUMBER = re.compile(
    r"[(\[]?[$€£]?[.·]?\d|(?:an?\s+|one[- ]|two[- ]|three[- ])?(?:half|thirds?|quarters?|fifths?|tenths?|dozen)\b",
    re.IGNORECASE,
)
#: a share of what follows: "61 % of", "3 of the 12", "one in five", "few"
_SHARE = re.compile(
    r"(?:(?:%|\bper ?cent|\d\)?)\s+of(?:\s+(?:the|these|those|all|our))?(?:\s+\d+)?"
    r"|\b(?:few|fewer|some|many|most|several|certain|half|(?:nearly|almost)\s+all|one in \w+"
    r"|a\s+(?:third|quarter|half|majority|minority|few|number|fraction|proportion|subset|subgroup)"
    r"|(?:two|three)[- ](?:thirds|quarters|fifths))(?:\s+of(?:\s+(?:the|these|those|all|our))?)?)\s+\Z",
    re.IGNORECASE,
)
#: After a number, over optional spaces, these belong to it: 50 %, 37 °C, 3 × 10⁵.
_NUMBER_TAIL = re.compile(r"\s{0,3}[%‰°×^·]")

#: Code points looked at before a quote: room for :data:`NEGATION_REACH` long words.
_WINDOW = 120
#: The same for a negation that governs the rest of its sentence.
_SENTENCE_WINDOW = 500
_CLAUSE_ENDS = re.compile(r"[;:—]")
#: Here a clause that stands against the one before begins; "not yet" and ", however," are no such.
_CONTRASTS = re.compile(
    r"[;—]|:\s|\b(?:but|whereas)\b|,\s*yet\b|\b(?:although|though|while|however)\b(?=[^,]*\Z)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_NEXT_WORD = re.compile(rf"\s+({_WORD.pattern})")


def sentence_at(text: str, at: int) -> Sentence:
    """Return the sentence that holds the character at ``at``, which must not be whitespace."""
    sentences = _sentences(text)
    return sentences[bisect_right(sentences, at, key=attrgetter("start")) - 1]


def cuts_token(text: str, start: int, end: int) -> bool:
    """Return whether ``text[start:end]`` begins or ends within a word or a number.

    Hyphenated words, ratios and ranges are one token each; so are a number and its percent sign, its power of ten, its
    thousands; so is a unit (mm Hg, mg per kg).
    """
    if _is_inside(text, start) or _is_inside(text, end):
        return True
    if text[end - 1].isdigit() and _NUMBER_TAIL.match(text, end):
        return True
    first, last = _figure_at(text, start), _figure_at(text, end)
    if first is not None and first.number < start and not _drops_sign(text, first, start):
        return True
    if last is None or end <= last.number or _is_compared_after(last, end):
        return False
    return end != last.number_end


def drops_comparison(text: str, start: int, end: int) -> bool:
    """Return whether ``text[start:end]`` leaves out the sign or the comparison of its first or last number, or its share.

    Examples: "p < 0.05", "less than 5 mg", "65 years or older", "61 % of patients recovered".
    """
    first, last = _figure_at(text, start), _figure_at(text, end)
    if first is not None and (start <= first.number or _drops_sign(text, first, start)):
        return True
    if last is not None and _is_compared_after(last, end):
        return True
    if start and text[start] == "=" and text[start - 1] in "<>":
        return True
    before = text[max(0, start - _WINDOW) : start]
    if _SHARE.search(before):
        return True
    if not _NUMBER.match(text, start):
        return False
    if _COMPARING_WORDS.search(before):
        return True
    return before.rstrip().endswith((*_COMPARISONS, "<=", ">="))


def _figure_at(text: str, at: int) -> Figure | None:
    """Return the figure that ``at`` splits."""
    every = figures(text)
    i = bisect_right(every, at, key=attrgetter("start")) - 1
    return every[i] if i >= 0 and every[i].start < at < every[i].end else None


def _drops_sign(text: str, figure: Figure, at: int) -> bool:
    """Return whether the sign of a figure stands before ``at``, and its number behind."""
    return figure.value < 0 and text[figure.number : at].strip().lower() in _MINUS


def _is_compared_after(figure: Figure, at: int) -> bool:
    """Return whether a figure's comparison stands behind ``at``, behind its number."""
    return bool(figure.comparison) and figure.start == figure.number and figure.number_end <= at


def drops_negation(text: str, start: int, end: int) -> bool:
    """Return whether ``text[start:end]`` leaves out a negation that reverses its meaning."""
    return _follows(text, start) or _is_governed(text, start) or _precedes(text, end)


def _follows(text: str, start: int) -> bool:
    """Return whether one of the last words before ``start``, in the same clause, is a negation."""
    before = text[max(0, start - _WINDOW) : start]
    if non_before(text, start) < start:
        return True
    if not any(negates(word) for word in _WORD.findall(before)):
        return False
    begin = max(sentence_at(text, start).start, start - _WINDOW)
    clause = _CLAUSE_ENDS.split(text[begin:start])[-1]
    words = list(_WORD.finditer(clause))
    if words and words[-1][0] == "or" and _is_denied(clause):
        return True
    for i, word in enumerate(words):
        apart = sum(one[0].lower() not in _CARRYING for one in words[i + 1 :])
        if apart >= NEGATION_REACH or not negates(word[0]):
            continue
        between = clause[word.end() :]
        if i + 1 < len(words) and words[i + 1][0] == "only":
            continue
        # "did not help, | ibuprofen did" is a new clause; "did not, however, | help" is not.
        if "," not in between or between.startswith(","):
            return True
    return False


def _is_denied(clause: str) -> bool:
    """Return whether a clause that ends in "or" denies what follows: "did not prevent stroke or | reduce mortality"."""
    behind = max((contrast.end() for contrast in _CONTRASTS.finditer(clause)), default=0)
    words = [word[0] for word in _WORD.finditer(clause, behind)]
    return any(negates(word) and words[i + 1 : i + 2] != ["only"] for i, word in enumerate(words))


def non_before(text: str, start: int) -> int:
    """Return where the "non-" before a word begins; ``start``: there is none."""
    found = _NON.search(text, max(0, start - 6), start)
    return start if found is None else found.start()


def _is_governed(text: str, start: int) -> bool:
    """Return whether ``start`` stands in what was denied before: "no evidence that A, in adults, | does"."""
    first = _WORD.match(text, start)
    if first and first[0] in _CONTRAST_WORDS:
        return False
    if not _DENIAL.search(text[max(0, start - _SENTENCE_WINDOW) : start + _WINDOW]):
        return False
    sentence = sentence_at(text, start)
    begin = max(sentence.start, start - _SENTENCE_WINDOW)
    for contrast in _CONTRASTS.finditer(text, begin, start):
        begin = contrast.end()
    # The word that begins what is denied may be one of the quote's own.
    words = list(_WORD.finditer(text, begin, min(sentence.end, start + _WINDOW)))
    return any(
        _governs(text, words[i : i + 2 + GOVERNING_REACH], start)
        for i, word in enumerate(words)
        if word.start() < start
    )


def _governs(text: str, words: list[re.Match[str]], start: int) -> bool:
    """Return whether the first of these words denies what follows them, up to ``start`` and beyond.

    An odd comma ends a clause; a pair of them holds an aside.
    """
    denial = words[0]
    if not (negates(denial[0]) or denial[0].lower() in DOUBTS):
        return False
    for before, opener in pairwise(words):
        if opener[0] in _CONTRAST_WORDS and opener.start() > start:
            return False
        if before is denial and opener[0] == "only":
            return False
        if text.count(",", denial.end(), opener.start()) % 2:
            continue
        if opener[0] in _CLAUSE_OPENERS:
            return True
        if opener[0] == "of" and before[0].lower() in _EVIDENCE:
            return text.count(",", opener.end(), max(start, opener.end())) % 2 == 0
    return False


def _precedes(text: str, end: int) -> bool:
    """Return whether a negation or an exception comes right after ``end``: "the trial did | not", "all, | except …"."""
    if text[end - 1] not in ".;:!?" and _EXCEPT.match(text, end):
        return True
    following = _NEXT_WORD.match(text, end)
    if following is None or text[end - 1] in ".,;:!?—" or not negates(following[1]):
        return False
    if text.startswith(" only", following.end()):
        return False
    return following.end() <= sentence_at(text, end - 1).end


def negates(word: str) -> bool:
    """Return whether a word is one of :data:`NEGATIONS`, or ends in "n't"."""
    lower = word.lower().replace("’", "'")
    return lower in NEGATIONS or lower.endswith("n't")


def _is_inside(text: str, at: int) -> bool:
    """Return whether offset ``at`` splits a token."""
    if not 0 < at < len(text):
        return False
    left, right = text[at - 1], text[at]
    if unicodedata.category(right).startswith("M"):
        return True
    if _is_word(left) and (_is_word(right) or right in _DASHES + "+⁺⁻"):
        return True
    if (left.isdigit() and right == "%") or _connects(text, at) or _connects(text, at - 1):
        return True
    # A decimal without its zero: ".5 mg" must not become "5 mg".
    return left in ".·" and right.isdigit() and not (at > 1 and text[at - 2].isalpha())


def _connects(text: str, at: int) -> bool:
    """Return whether the character at ``at`` joins its neighbours into one token."""
    if not 0 < at < len(text) - 1:
        return False
    left, joint, right = text[at - 1], text[at], text[at + 1]
    if not _is_word(left) or not _is_word(right):
        return False
    if joint in _DASHES + "/'’·":
        return True
    if joint in ".,:" and left.isdigit() and right.isdigit():
        return True
    # "i.v", "e.g"; but "promoter.The" is two sentences that lost their space.
    return joint == "." and left.isalpha() and right.isalpha() and not right.isupper()


def _is_word(char: str) -> bool:
    return char.isalnum() or unicodedata.category(char).startswith("M")
