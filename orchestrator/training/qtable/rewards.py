"""How good an answer is beside a reference: what a Q-table is rewarded for.

After Arefeen et al., "LeanContext", "Details of RL", reward: ROUGE-1 (Lin, "ROUGE", 2004) of the answer. Beside
it stands containment, for references of a few words that any right answer holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from posology.llm.offline.replies import NOTICE
from posology.text.refusals import is_refusal
from posology.types import Answer, Refusal

#: a word; the package's own tokenizer knows ASCII alone, and µ and β are letters here
_WORD = re.compile(r"[^\W_]+")
#: shorter words are not stemmed, as in the package's own tokenizer
_SHORT = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """What was answered, or is to be answered."""

    #: the answer, or why there is none
    text: str
    #: the verdict; ``None`` for free questions and where there is none
    choice: str | None = None
    #: whether it says that there is no answer
    refused: bool = False

    @classmethod
    def by(cls, outcome: Answer | Refusal) -> Said:
        """What a strategy came to."""
        if isinstance(outcome, Refusal):
            return cls(text=outcome.reason, refused=True)
        return cls(text=outcome.text, choice=outcome.choice)

    @classmethod
    def reference(cls, text: str, choices: Sequence[str]) -> Said:
        """A reference answer as a file gives it: a verdict, words, or that there is no answer."""
        verdicts = {choice.casefold(): choice for choice in choices}
        choice = verdicts.get(text.strip().casefold())
        return cls(text=text, choice=choice, refused=choice is None and is_refusal(text))


#: quality of an answer's text beside a reference's, 0 to 1
Score = Callable[[str, str], float]


def rouge1(said: str, reference: str) -> float:
    """ROUGE-1 F: the harmonic mean of the shares of the stemmed words that the other text has, too."""
    found: float = _scorer().score(reference, said)["rouge1"].fmeasure
    return found


def containment(said: str, reference: str) -> float:
    """1 where the answer holds every stemmed word of a reference that has words, else 0."""
    wanted = set(_words(reference))
    return float(bool(wanted) and wanted <= set(_words(said)))


#: name → how it is computed
SCORES: Mapping[str, Score] = MappingProxyType({"rouge1": rouge1, "containment": containment})


def quality(said: Said, references: Sequence[Said], score: str) -> float:
    """How good an answer is beside the reference that it is nearest to, 0 to 1.

    A refusal is worth nothing, unless the reference is one. Where the reference is a verdict, the answer's
    verdict decides, whatever the score.

    Args:
        said: what was answered.
        references: at least one.
        score: name of one of :data:`SCORES`.
    """
    return max(_against(said, reference, SCORES[score]) for reference in references)


def _against(said: Said, reference: Said, score: Score) -> float:
    if said.refused or reference.refused:
        return float(said.refused and reference.refused)
    if reference.choice is not None:
        return float(said.choice == reference.choice)
    return score(_spoken(said.text), _spoken(reference.text))


def _spoken(text: str) -> str:
    # it stands under every answer of the offline reader, and says nothing of any question
    return text.replace(NOTICE, "")


@cache
def _scorer() -> Any:
    # seconds to import
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rouge1"], tokenizer=_Words())


class _Words:
    """Splits as the package's own tokenizer does, in any alphabet."""

    def tokenize(self, text: str) -> list[str]:
        """Lower-case words; those longer than three letters are stemmed."""
        return _words(text)


@cache
def _stemmer() -> Callable[[str], str]:
    from nltk.stem.porter import PorterStemmer

    stem: Callable[[str], str] = PorterStemmer().stem
    # the same words come again in every answer to a question
    return cache(stem)


def _words(text: str) -> list[str]:
    stem = _stemmer()
    return [stem(word) if len(word) > _SHORT else word for word in _WORD.findall(text.lower())]
