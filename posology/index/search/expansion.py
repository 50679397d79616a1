"""Query expansion: abbreviations and MeSH terms that are searched in addition to a question's words.

Both are off by default (figures: docs/concepts/evidence.md). The added terms are returned with the passages.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from posology.text.abbreviations import is_short_form

if TYPE_CHECKING:
    from posology.corpus.mesh import Heading
    from posology.index.view import View

#: maximum number of words of a term
LONGEST = 6
#: minimum number of agreeing definitions of an abbreviation in the index, and their minimum share
DEFINED, AGREED = 2, 0.5
#: minimum number of letters of a MeSH term in lower case
SHORTEST = 5
#: maximum number of terms added to a question
MOST = 6

_WORD = re.compile(r"[^\W_]+(?:[-'’/][^\W_]+)*")


class Expander(Protocol):
    """Adds terms to a question. Blocking."""

    def __call__(self, question: str, view: View) -> tuple[str, ...]:
        """Return terms that the question does not hold, the most useful first."""
        ...


def terms(question: str) -> tuple[str, ...]:
    """Return every run of up to :data:`LONGEST` words of a question, in lower case, the longest first."""
    words = list(_WORD.finditer(question))
    runs = (
        question[words[i].start() : words[i + n - 1].end()].casefold()
        for n in range(min(LONGEST, len(words)), 0, -1)
        for i in range(len(words) - n + 1)
    )
    return tuple(dict.fromkeys(runs))


def short_forms(question: str) -> tuple[str, ...]:
    """Return the words of a question that are abbreviations by their form."""
    return tuple(dict.fromkeys(w[0] for w in _WORD.finditer(question) if is_short_form(w[0])))


class Abbreviations:
    """Expander of short forms to long forms, and back, as the literature defines them.

    An ambiguous short form is expanded only if most of its definitions agree.

    Args:
        back: whether long forms are also expanded to short ones.
    """

    def __init__(self, *, back: bool = False) -> None:
        self._back = back

    def __call__(self, question: str, view: View) -> tuple[str, ...]:
        """See :class:`Expander`."""
        asked = question.casefold()
        shorts = short_forms(question)
        longs = [term for term in terms(question) if " " in term] if self._back else []
        found = Counter(view.definitions(shorts, longs))
        wanted = set(shorts)
        forward = [
            _agreed({long: n for (s, long), n in found.items() if s == short}) for short in shorts
        ]
        back = [
            _agreed(
                {
                    short: n
                    for (short, one), n in found.items()
                    if one == long and short not in wanted
                }
            )
            for long in longs
        ]
        added = (term for term in (*forward, *back) if term is not None)
        return tuple(dict.fromkeys(term for term in added if term.casefold() not in asked))[:MOST]


def _agreed(counts: Mapping[str, int]) -> str | None:
    """Return the form that most definitions give."""
    if not counts:
        return None
    form = max(sorted(counts), key=counts.__getitem__)
    enough = counts[form] >= DEFINED and counts[form] >= AGREED * sum(counts.values())
    return form if enough else None


class Headings:
    """Expander of entry terms to their MeSH headings.

    Args:
        vocabulary: see :func:`posology.corpus.mesh.read_terms`. Only entry terms of the same meaning count, and no short
            words in lower case: "act" is a drug's name, too.
    """

    def __init__(self, vocabulary: Iterable[Heading]) -> None:
        self._headings: dict[str, str] = {}
        for heading in vocabulary:
            for term in (heading.name, *heading.synonyms):
                if len(term) >= SHORTEST or any(map(str.isupper, term[1:])):
                    self._headings.setdefault(term.casefold(), heading.name)

    def __call__(self, question: str, view: View) -> tuple[str, ...]:  # noqa: ARG002 - the vocabulary is its own
        """See :class:`Expander`."""
        asked = question.casefold()
        found = (self._headings.get(term) for term in terms(question))
        return tuple(
            dict.fromkeys(h for h in found if h is not None and h.casefold() not in asked)
        )[:MOST]


class Several:
    """Several expanders, applied in order."""

    def __init__(self, expanders: Sequence[Expander]) -> None:
        self._expanders = tuple(expanders)

    def __call__(self, question: str, view: View) -> tuple[str, ...]:
        """See :class:`Expander`."""
        found = (term for expand in self._expanders for term in expand(question, view))
        return tuple(dict.fromkeys(found))[:MOST]
