"""Other words for what a question says, which a search may look for, too: abbreviations and MeSH terms.

Both are off unless they are switched on (figures: docs/concepts/evidence.md). What was added is told with the
passages.
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

#: words of a term that is looked for in a question, at most
LONGEST = 6
#: definitions of an abbreviation in the index from which on it is believed, and the share of them that must agree
DEFINED, AGREED = 2, 0.5
#: letters of a MeSH term that is a word in lower case, at least
SHORTEST = 5
#: terms that are added to a question, at most
MOST = 6

_WORD = re.compile(r"[^\W_]+(?:[-'’/][^\W_]+)*")


class Expander(Protocol):
    """Gives other words for what a question says. Blocking."""

    def __call__(self, question: str, view: View) -> tuple[str, ...]:
        """Terms that the question does not hold, the most useful first."""
        ...


def terms(question: str) -> tuple[str, ...]:
    """Every run of up to :data:`LONGEST` words of a question, in lower case, the longest first."""
    words = list(_WORD.finditer(question))
    runs = (
        question[words[i].start() : words[i + n - 1].end()].casefold()
        for n in range(min(LONGEST, len(words)), 0, -1)
        for i in range(len(words) - n + 1)
    )
    return tuple(dict.fromkeys(runs))


def short_forms(question: str) -> tuple[str, ...]:
    """The words of a question that are abbreviations by their form."""
    return tuple(dict.fromkeys(w[0] for w in _WORD.finditer(question) if is_short_form(w[0])))


class Abbreviations:
    """Long forms for the short forms of a question, and the other way about, as the literature defines them.

    A short form of several meanings is given one only where most of its definitions agree.

    Args:
        back: whether long forms are given their short ones, too.
    """

    def __init__(self, *, back: bool = False) -> None:
        self._back = back

    def __call__(self, question: str, view: View) -> tuple[str, ...]:
        """See :class:`Expander`."""
        said = question.casefold()
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
        return tuple(dict.fromkeys(term for term in added if term.casefold() not in said))[:MOST]


def _agreed(counts: Mapping[str, int]) -> str | None:
    """The form that most definitions give."""
    if not counts:
        return None
    form = max(sorted(counts), key=counts.__getitem__)
    enough = counts[form] >= DEFINED and counts[form] >= AGREED * sum(counts.values())
    return form if enough else None


class Headings:
    """The MeSH headings that a question names by another of their terms.

    Args:
        vocabulary: as :func:`posology.corpus.mesh.read_terms` reads it. Of the entry terms only those count that
            mean the same, and short words in lower case do not: "act" is a drug's name, too.
    """

    def __init__(self, vocabulary: Iterable[Heading]) -> None:
        self._headings: dict[str, str] = {}
        for heading in vocabulary:
            for term in (heading.name, *heading.synonyms):
                if len(term) >= SHORTEST or any(map(str.isupper, term[1:])):
                    self._headings.setdefault(term.casefold(), heading.name)

    def __call__(self, question: str, view: View) -> tuple[str, ...]:  # noqa: ARG002 - it knows the words itself
        """See :class:`Expander`."""
        said = question.casefold()
        found = (self._headings.get(term) for term in terms(question))
        return tuple(dict.fromkeys(h for h in found if h is not None and h.casefold() not in said))[
            :MOST
        ]


class Several:
    """Expanders one after the other."""

    def __init__(self, expanders: Sequence[Expander]) -> None:
        self._expanders = tuple(expanders)

    def __call__(self, question: str, view: View) -> tuple[str, ...]:
        """See :class:`Expander`."""
        found = (term for expand in self._expanders for term in expand(question, view))
        return tuple(dict.fromkeys(found))[:MOST]
