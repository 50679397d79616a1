"""Quality of an answer compared with a reference: the reward of a Q-table.

After Arefeen et al., "LeanContext", "Details of RL", reward: ROUGE-1 (Lin, "ROUGE", 2004) of the answer. The
alternative is containment, for short references whose words any correct answer has.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from posology.llm.offline.replies import NOTICE
from posology.text.quoting.references import without_references
from posology.text.refusals import is_refusal
from posology.types import Answer, Refusal

#: a word, with letters such as µ and β, which the package's own tokenizer drops
_WORD = re.compile(r"[^\W_]+")
#: a number, or a word with the digits of its name: "BRCA1", "IL-6"
_NUMBER_OR_WORD = re.compile(r"\d+(?:\.\d+)*|[^\W\d_]+(?:[-‐‑]?\d+[^\W_]*)?")
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:[, \u00a0\u2009\u202f]\d{3})+(?!\d)")
_DIVIDING = re.compile(r"[, \u00a0\u2009\u202f]")
_HYPHENS = re.compile(r"[-‐‑]")
#: what is written otherwise and is the same: not 10² and 102
_SAME = str.maketrans("µ₀₁₂₃₄₅₆₇₈₉", "μ0123456789")
#: words up to this length are not stemmed, as in the package's own tokenizer
_SHORT = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """An answer, or a reference answer."""

    #: the answer, or the reason of a refusal
    text: str
    #: the verdict; ``None``: free question, or no verdict
    choice: str | None = None
    #: whether it is a refusal
    refused: bool = False

    @classmethod
    def by(cls, outcome: Answer | Refusal) -> Said:
        """Return the answer of a strategy's outcome."""
        if isinstance(outcome, Refusal):
            return cls(text=outcome.reason, refused=True)
        # an answer that cites more would score less
        text = without_references(outcome.text, {one.passage_id for one in outcome.citations})
        return cls(text=text, choice=outcome.choice)

    @classmethod
    def reference(cls, text: str, choices: Sequence[str]) -> Said:
        """Parse a reference answer: a verdict, words, or a refusal."""
        verdicts = {choice.casefold(): choice for choice in choices}
        choice = verdicts.get(text.strip().casefold())
        return cls(text=text, choice=choice, refused=choice is None and is_refusal(text))


#: quality of an answer's text compared with a reference's, 0 to 1
Score = Callable[[str, str], float]


def rouge1(said: str, reference: str) -> float:
    """Return ROUGE-1 F: the harmonic mean of precision and recall of stemmed words."""
    found: float = _scorer().score(reference, said)["rouge1"].fmeasure
    return found


def containment(said: str, reference: str) -> float:
    """Return 1 if the answer has every stemmed word of a reference with words, else 0."""
    wanted = set(_plain(reference))
    return float(bool(wanted) and wanted <= set(_plain(said)))


#: scores by name
SCORES: Mapping[str, Score] = MappingProxyType({"rouge1": rouge1, "containment": containment})


def quality(answer: Said, references: Sequence[Said], score: str) -> float:
    """Return the quality of an answer compared with its nearest reference, 0 to 1.

    A refusal scores 0, unless the reference is a refusal. If the reference is a verdict, only the answer's verdict
    counts.

    Args:
        answer: that is scored.
        references: at least one.
        score: one of :data:`SCORES`.
    """
    return max(_against(answer, reference, SCORES[score]) for reference in references)


def _against(said: Said, reference: Said, score: Score) -> float:
    if said.refused or reference.refused:
        return float(said.refused and reference.refused)
    if reference.choice is not None:
        return float(said.choice == reference.choice)
    return score(_spoken(said.text), _spoken(reference.text))


def _spoken(text: str) -> str:
    # the notice under every answer of the offline reader
    return text.replace(NOTICE, "")


@cache
def _scorer() -> Any:
    # seconds to import
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rouge1"], tokenizer=_Words())


class _Words:
    """Splits as the package's own tokenizer does, but in any alphabet."""

    def tokenize(self, text: str) -> list[str]:
        """Return lower-case words; those longer than three letters are stemmed."""
        return _words(text)


@cache
def _stemmer() -> Callable[[str], str]:
    from nltk.stem.porter import PorterStemmer

    stem: Callable[[str], str] = PorterStemmer().stem
    # answers to a question share most words
    return cache(stem)


def _words(text: str) -> list[str]:
    return _stemmed(_WORD.findall(text.lower()))


def _plain(text: str) -> list[str]:
    """Return words as :func:`_words` does, but numbers whole, apart from their units, and however they are written."""
    same = unicodedata.normalize("NFC", text).translate(_SAME).lower()
    whole = _THOUSANDS.sub(lambda found: _DIVIDING.sub("", found[0]), same)
    return _stemmed(_HYPHENS.sub("", word) for word in _NUMBER_OR_WORD.findall(whole))


def _stemmed(words: Iterable[str]) -> list[str]:
    stem = _stemmer()
    return [stem(word) if len(word) > _SHORT else word for word in words]
