"""The query of a question, by a rule without a model.

1. Text in double quotes is a phrase and stays one.
2. Of the rest, words stay; punctuation, the words of :data:`STOP` and repetitions go.
3. At most :data:`MAX_TERMS` terms stay, joined by ``AND``.
4. A query that finds fewer than :data:`ENOUGH` records is tried again with one term less, down to two: words that are
   frequent in English go first, the last of them before the others, then the last of the rest. Of queries that all find
   fewer, the one that finds most is taken.

PubMed and Europe PMC both read the result, and both expand its words to their headings and synonyms themselves.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import date
from functools import cache
from types import MappingProxyType

from posology.corpus.live.forms import Begun, ServiceName
from posology.errors import InvalidQuery
from posology.text.bounds import FREQUENT

#: maximum terms of a query
MAX_TERMS = 12
#: records that a query finds so that no wider one is tried
ENOUGH = 10
#: terms that a query keeps however little it finds
_FEWEST = 2

_PHRASE = re.compile(r'["“”]([^"“”]{2,200})["“”]')
_WORD = re.compile(r"[^\W_]++(?:[-‐‑'’][^\W_]++)*+")
#: words of questions rather than of their subject; with ``AND``, each would exclude articles that answer
STOP = frozenset(
    re.findall(
        r"\w+",
        "a about after against all am among an and any are as at be been before being between both but by can "
        "cannot could did do does doing during each for from had has have having how if in into is it its just "
        "may me might more most much must my no nor not of off on or other our out over own same shall she should "
        "so some such than that the their them then there these they this those through to too under until up "
        "upon us very was we were what when where which while who whom whose why will with within without would you "
        "your "
        # what questions say of every subject
        "affect affects answer associated association benefit benefits best better cause caused causes causing "
        "change changes compared comparison compare decrease decreased decreases difference differences differ "
        "effect effective effectively effectiveness effects efficacious efficacy ever evidence explain exist exists "
        "good help helps improve improved improves improving increase increased increases increasing influence know "
        "known lead leads less likely lower lowers make makes patient patients people person possible prevent "
        "prevented prevents raise raises recommended reduce reduced reduces reducing reduction related relation "
        "relationship role show shown study studies tell treat treated useful use used uses using versus vs work "
        "works worse",
    )
)


#: what leaves only the records that a service has added since a day, or also those that it has changed, in its language
_SINCE: Mapping[ServiceName, str] = MappingProxyType(
    {
        "pubmed": '("{0:%Y/%m/%d}"[edat] : "3000"[edat])',
        "europepmc": "FIRST_IDATE:[{0} TO 3000-01-01]",
        "clinicaltrials": "AREA[LastUpdatePostDate]RANGE[{0},MAX]",
    }
)


@cache
def _frequent() -> frozenset[str]:
    return frozenset(FREQUENT.read_text(encoding="utf-8").split())


def queries(question: str) -> tuple[str, ...]:
    """Return the queries of a question, in the order in which they are tried until one finds enough.

    Raises:
        InvalidQuery: the question has no word.
    """
    left = _terms(question)
    found = [_joined(left)]
    while len(left) > _FEWEST:
        left = _shorter(left)
        found.append(_joined(left))
    return tuple(found)


def since(query: str, service: ServiceName, day: date) -> str:
    """Return the query for those of its records that a service has added since a day; ClinicalTrials.gov: or changed."""
    return f"({query}) AND {_SINCE[service].format(day)}"


async def first_enough(tried: Sequence[str], search: Callable[[str], Awaitable[Begun]]) -> Begun:
    """Return the reply to the first query that finds enough, else to the one that finds most, with notes on the others.

    Args:
        tried: the queries, one at least.
        search: searches for one.
    """
    best: Begun | None = None
    notes: dict[str, str] = {}
    for query in tried:
        begun = await search(query)
        notes[query] = f"`{query}` finds {begun.found or 'nothing'}."
        if best is None or begun.found > best.found:
            best = begun
        if begun.found >= ENOUGH:
            break
    assert best is not None
    if best.found:
        notes.pop(best.query or "")
    return best.model_copy(update={"notes": (*notes.values(), *best.notes)})


def _terms(question: str) -> list[str]:
    phrases = [" ".join(_WORD.findall(text)) for text in _PHRASE.findall(question)]
    words = _WORD.findall(_PHRASE.sub(" ", question))
    told = [word for word in words if word.lower() not in STOP]
    terms: dict[str, str] = {}
    for term in [f'"{phrase}"' for phrase in phrases if phrase] + (told or words):
        terms.setdefault(term.lower(), term)
    if not terms:
        raise InvalidQuery("the question has no word to search for", field="question")
    return list(terms.values())[:MAX_TERMS]


def _shorter(terms: list[str]) -> list[str]:
    frequent = [place for place, term in enumerate(terms) if term.lower() in _frequent()]
    drop = frequent[-1] if frequent else len(terms) - 1
    return [term for place, term in enumerate(terms) if place != drop]


def _joined(terms: list[str]) -> str:
    return " AND ".join(terms)
