"""Check of summaries: keep a sentence only if its source supports its numbers, drugs, names and negations.

The check uses no model. A sentence that is in the source word for word passes. In any other sentence, each number
must be in the source with its comparison and unit, and so must each drug and each name with digits. If a source
sentence has nearly all of its words, both must negate the same. A sentence must not negate if the source does not.
A sentence that fails is omitted: a missing sentence harms a reader less than a wrong dose. A paraphrase that adds or
drops a negation is seldom detected; figures: ``python -m evals.compressors.summarization``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from posology.text._lexicon import words
from posology.text.figures import lacking, names, uncompared
from posology.text.quotes import Span, locate
from posology.text.quoting.edges import DOUBTS, NEGATIONS, drops_negation, non_before
from posology.text.sentences import split
from posology.types import Passage
from strategies.compression.wording.drugs import is_drug

#: Share of a summary sentence's content words that a parallel source sentence has: it says the same or denies it.
PARALLEL = 0.75
#: Minimum content words for this comparison.
LEAST_CONTENT = 2
#: Letters of a word that are compared: "reduced" equals "reduces".
_STEM = 5

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?|\d+(?:[.,]\d+)*")
_TERM = re.compile(r"[^\W_]+(?:[-‐‑][^\W_]+)*")
#: "not significant", "not effective", "not safe", "not indicated" in one word, which the words above divide or hide
_IN_ONE_WORD = re.compile(
    r"\b(?:(?:non[-‐‑ ]?|in)(?=significant(?:ly)?\b)|in(?=effective(?:ly|ness)?\b|efficacious\b)|un(?=safe\b))",
    re.IGNORECASE,
)
_CONTRAINDICATED = re.compile(r"\bcontraindicat\w+", re.IGNORECASE)
_CONTRA = re.compile(r"\bcontra(?=indicated\b)", re.IGNORECASE)
#: a finding of its own, which "not" in another place denies
_NONINFERIOR = re.compile(r"\bno[nt][-‐‑ ]?(?=inferior(?:ity)?\b)", re.IGNORECASE)
_NON = re.compile(r"(?<![^\W_])non[\s‐‑-]+([^\W\d_]+)", re.IGNORECASE)
_HYPHEN = re.compile(r"[-‐‑]")
_EMPTY = words(
    "this that these those with without from into than then them they their there were was have has had been "
    "being also both such some more most which while when where what would could should might will shall "
    "very only about after before between during each other study studies trial patients does"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    """A summary after removal of the sentences that its source does not support."""

    #: supported sentences, joined by spaces; may be empty
    text: str
    #: removed sentences, in order
    added: tuple[str, ...]

    @property
    def dropped(self) -> int:
        """Return the number of removed sentences."""
        return len(self.added)


def check(summary: str, passage: Passage) -> Checked:
    """Remove from a summary the sentences that its source does not support.

    Args:
        summary: a model's summary of the passage.
        passage: the source: its text and its title.
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
    """Return whether a source has the numbers, drugs and names of a sentence, and negates the same.

    Args:
        passage: the source: its text and its title.
        sentence: a sentence of a summary.
    """
    if not _WORD.search(sentence):
        # punctuation has no content, and a long run of it matches in as many places
        return False
    if isinstance(locate(sentence, passage.text), Span):
        return True
    source = f"{passage.title}\n{passage.text}" if passage.title else passage.text
    if lacking(sentence, source) or not names(sentence) <= names(source):
        return False
    if not drugs(sentence) <= terms(source):
        return False
    return negates_alike(sentence, source, passage.text)


def negates_alike(sentence: str, source: str, text: str) -> bool:
    """Return whether a sentence negates only if its source does, and as a parallel sentence of the text does.

    Args:
        sentence: a sentence in other words.
        source: all that it may rest on.
        text: the part of the source whose sentences are compared.
    """
    if denial(sentence) and not denial(source):
        return False
    alike = parallels(sentence, text)
    return any(alike) or not alike


def stems(text: str) -> frozenset[str]:
    """Return the stems of a text's content words, without negations."""
    return frozenset(ordered_stems(text))


def ordered_stems(text: str) -> tuple[str, ...]:
    """Return the stems of a text's content words, without negations, in their order."""
    return tuple(stem for stem, _, _ in _content(text, 0, len(text)))


def drugs(sentence: str) -> set[str]:
    """Return the drugs in a sentence, lower case, singular; of compounds, the parts that are drugs."""
    found = set()
    for match in _TERM.finditer(sentence):
        if is_drug(match[0]):
            parts = [part for part in _HYPHEN.split(match[0]) if is_drug(part)]
            found |= {_singular(part) for part in parts or [match[0]]}
    return found


@lru_cache(maxsize=256)
def terms(text: str) -> frozenset[str]:
    """Return the words of a text, lower case, singular, compounds whole and in parts.

    Words are whole: a text about esomeprazole does not name omeprazole.
    """
    found = [match[0] for match in _TERM.finditer(text)]
    parts = [part for one in found for part in _HYPHEN.split(one)]
    return frozenset(map(_singular, (*found, *parts)))


def _singular(word: str) -> str:
    return word.lower().removesuffix("s")


@lru_cache(maxsize=256)
def denial(text: str) -> str:
    """Return the first word of a text that negates or doubts; empty: none."""
    said = [match[0].lower() for match in _WORD.finditer(_opened(uncompared(text)))]
    found = (word for i, word in enumerate(said) if said[i + 1 : i + 2] != ["only"])
    word = next(filter(_is_denial, found), "")
    forbids = None if word else _CONTRAINDICATED.search(text)
    return word if forbids is None else forbids[0].lower()


def parallels(sentence: str, text: str) -> tuple[bool, ...]:
    """Return for each sentence of a text that is parallel to a sentence whether it negates as often."""
    # "no more than 5 mg" is "at most 5 mg"
    sentence, text = _opened(uncompared(sentence)), _opened(uncompared(text))
    if not (_CONTRAINDICATED.search(sentence) and _CONTRAINDICATED.search(text)):
        # beside each other they need no other words
        sentence, text = _CONTRA.sub("not ", sentence), _CONTRA.sub("not ", text)
    wanted = {stem for stem, _, _ in _content(sentence, 0, len(sentence))}
    if len(wanted) < LEAST_CONTENT:
        return ()
    denials = _denials(sentence)
    nons = {found[1].lower()[:_STEM] for found in _NON.finditer(sentence)}
    alike: list[bool] = []
    for stems in _sentences(text):
        shared = [(start, end) for stem, start, end in stems if stem in wanted]
        if len({stem for stem, _, _ in stems} & wanted) < PARALLEL * len(wanted):
            continue
        first, last = shared[0][0], shared[-1][1]
        if next(stem for stem, _, _ in stems if stem in wanted) in nons:
            # "non-smokers" is a word of both
            first = non_before(text, first)
        alike.append(denials == _denials(text[first:last]) + drops_negation(text, first, last))
    return tuple(alike)


@lru_cache(maxsize=256)
def _sentences(text: str) -> tuple[tuple[tuple[str, int, int], ...], ...]:
    """Return the content words of each sentence."""
    return tuple(_content(text, s.start, s.end) for s in split(text))


def _content(text: str, start: int, end: int) -> tuple[tuple[str, int, int], ...]:
    """Return the stems of content words, each with start and end."""
    return tuple(
        (word[:_STEM], *match.span())
        for match in _WORD.finditer(text, start, end)
        if (len(word := match[0].lower()) > 3 or word[0].isdigit())
        and word not in _EMPTY
        and not _is_denial(word)
    )


def _denials(text: str) -> int:
    """Return the number of negations; "neither … nor" counts once, "not only" not at all."""
    said = [match[0].lower() for match in _WORD.finditer(text)]
    return sum(
        _is_denial(word) and word != "nor" and said[i + 1 : i + 2] != ["only"]
        for i, word in enumerate(said)
    )


def _opened(text: str) -> str:
    """Return a text with "not significant" for "insignificant", and "noninferior" for "not inferior"."""
    return _NONINFERIOR.sub("non", _IN_ONE_WORD.sub("not ", text))


def _is_denial(word: str) -> bool:
    return word in NEGATIONS or word in DOUBTS or word.endswith(("n't", "n’t"))
