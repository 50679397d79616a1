"""What of a summary may be shown: sentences that say nothing of numbers and denials but what the source says.

No model judges this. Sentences that the source has word for word stand; of others each number must be in
the source with its comparison and unit, and so must each drug and each name with digits; where a sentence of
the source has nearly all of its words, it must deny what that denies; and it denies nothing of a source that denies
nothing. What fails is left out, for a reader misses less by a sentence that is not there than by a dose that is
wrong. What a paraphrase denies or no longer denies is seldom found out: figures in ``evals.summarization``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from posology.text._edges import DOUBTS, NEGATIONS, drops_negation
from posology.text._lexicon import words
from posology.text.quotes import Span, locate
from posology.text.sentences import split
from posology.types import Passage
from strategies.compression.wording.drugs import is_drug
from strategies.compression.wording.figures import figures, names

#: A sentence of the source that has this share of a summary's words of content says the same, or denies it.
PARALLEL = 0.75
#: Fewer words of content tell nothing.
LEAST_CONTENT = 2
#: letters of a word that are compared: "reduced" is "reduces"
_STEM = 5

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?|\d+(?:[.,]\d+)*")
_TERM = re.compile(r"[^\W_]+(?:[-‐‑][^\W_]+)*")
_HYPHEN = re.compile(r"[-‐‑]")
_EMPTY = words(
    "this that these those with without from into than then them they their there were was have has had been "
    "being also both such some more most which while when where what would could should might will shall "
    "very only about after before between during each other study studies trial patients"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    """A summary after what its source does not bear out was left out."""

    #: the sentences that stand, joined by spaces; empty where none does
    text: str
    #: the sentences that were left out, in order
    added: tuple[str, ...]

    @property
    def dropped(self) -> int:
        """How many sentences were left out."""
        return len(self.added)


def faithful(summary: str, passage: Passage) -> str:
    """The sentences of a summary that its source bears out, see :func:`check`."""
    return check(summary, passage).text


def check(summary: str, passage: Passage) -> Checked:
    """Leave out of a summary what its source does not bear out, sentence by sentence.

    Args:
        summary: what a model wrote of the passage.
        passage: the source: its text, and its title.
    """
    summary = " ".join(summary.split())
    sentences = [sentence.of(summary) for sentence in split(summary)]
    good = [bears_out(passage, sentence) for sentence in sentences]
    parted = list(zip(sentences, good, strict=True))
    return Checked(
        text=" ".join(sentence for sentence, stands in parted if stands),
        added=tuple(sentence for sentence, stands in parted if not stands),
    )


def bears_out(passage: Passage, sentence: str) -> bool:
    """Whether a source has the numbers, drugs and names of a sentence, and denies no other than it.

    Args:
        passage: the source: its text, and its title.
        sentence: of a summary.
    """
    if not _WORD.search(sentence):
        # punctuation says nothing, and a long run of it is found in as many places
        return False
    if isinstance(locate(sentence, passage.text), Span):
        return True
    source = f"{passage.title}\n{passage.text}" if passage.title else passage.text
    known = figures(source)
    if not all(any(stated.says(one) for one in known) for stated in figures(sentence)):
        return False
    if not names(sentence) <= names(source):
        return False
    if not _drugs(sentence) <= _terms(source):
        return False
    if _denies(sentence) and not _denies(source):
        return False
    return _denies_alike(sentence, passage.text)


def _drugs(sentence: str) -> set[str]:
    """The drugs that a sentence names, in lower case, in the singular; of compounds the parts that name them."""
    found = set()
    for match in _TERM.finditer(sentence):
        if is_drug(match[0]):
            parts = [part for part in _HYPHEN.split(match[0]) if is_drug(part)]
            found |= {_singular(part) for part in parts or [match[0]]}
    return found


@lru_cache(maxsize=256)
def _terms(text: str) -> frozenset[str]:
    """The words of a text, in lower case, in the singular, compounds whole and in parts.

    Whole words: omeprazole is not what a text about esomeprazole names.
    """
    found = [match[0] for match in _TERM.finditer(text)]
    parts = [part for one in found for part in _HYPHEN.split(one)]
    return frozenset(map(_singular, (*found, *parts)))


def _singular(word: str) -> str:
    return word.lower().removesuffix("s")


@lru_cache(maxsize=256)
def _denies(text: str) -> bool:
    """Whether a text denies or doubts anything."""
    return any(_is_denial(match[0].lower()) for match in _WORD.finditer(text))


def _denies_alike(sentence: str, text: str) -> bool:
    """Whether a sentence denies as often as one of those of the text that have nearly all of its words."""
    wanted = {stem for stem, _, _ in _content(sentence, 0, len(sentence))}
    if len(wanted) < LEAST_CONTENT:
        return True
    denials = _denials(sentence)
    alike: list[bool] = []
    for stems in _sentences(text):
        shared = [(start, end) for stem, start, end in stems if stem in wanted]
        if len({stem for stem, _, _ in stems} & wanted) < PARALLEL * len(wanted):
            continue
        first, last = shared[0][0], shared[-1][1]
        alike.append(denials == _denials(text[first:last]) + drops_negation(text, first, last))
    return any(alike) or not alike


@lru_cache(maxsize=256)
def _sentences(text: str) -> tuple[tuple[tuple[str, int, int], ...], ...]:
    """Of each sentence its words of content."""
    return tuple(_content(text, s.start, s.end) for s in split(text))


def _content(text: str, start: int, end: int) -> tuple[tuple[str, int, int], ...]:
    """Words of content by their first letters, with where they begin and end."""
    return tuple(
        (word[:_STEM], *match.span())
        for match in _WORD.finditer(text, start, end)
        if (len(word := match[0].lower()) > 3 or word[0].isdigit())
        and word not in _EMPTY
        and not _is_denial(word)
    )


def _denials(text: str) -> int:
    """How often a text denies; "neither … nor" does so once, "not only" never."""
    said = [match[0].lower() for match in _WORD.finditer(text)]
    return sum(
        _is_denial(word) and word != "nor" and said[i + 1 : i + 2] != ["only"]
        for i, word in enumerate(said)
    )


def _is_denial(word: str) -> bool:
    return word in NEGATIONS or word in DOUBTS or word.endswith(("n't", "n’t"))
