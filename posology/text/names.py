"""Names of authors: one form for all sources, ``Family, Given``; the name of a group has no comma.

Exports write names in many ways (``Smith JA``, ``Smith, John A.``, ``John A. Smith``). Where the order of a name is not
known, it is kept as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

#: authors of one record that are kept; collaborations name thousands
MOST = 100
#: last of the authors of a record that has more, as MEDLINE writes it
MORE = "et al."

_SUFFIX = r"(?:Jr|Sr|II|III|IV|2nd|3rd)\.?"
#: ``Smith JA``, ``van der Berg J.-P.``, ``Smith JA Jr``
_INITIALS = re.compile(
    rf"(?P<family>\S.*?) (?P<given>(?:[^\W\d_a-z]\.?[- ]?){{1,5}})(?: (?P<suffix>{_SUFFIX}))?"
)
_SPACES = re.compile(r"[^\S\n]+")
_AND = re.compile(r",?\s+(?:and|&)\s+")
_ONLY_INITIALS = re.compile(r"\s*(?:[^\W\d_a-z]\.?[- ]?){1,5}")
_GROUP = re.compile(
    r"\b(?:group|investigators?|collaborat\w+|consortium|committee|network|study|trial|team|society|association|"
    r"organi[sz]ation|institut\w+|university|ministry|centers?|centres?|department|for|of|the)\b",
    re.IGNORECASE,
)
_PARTICLE = re.compile(r"(?:[a-zà-ÿ]+|d['’][a-z]*)")
#: words of a name at most: more are a group
_WORDS = 5
#: letters from which a word in capitals is a name, not initials
_LONG = 4
_OTHERS = frozenset({"et al", "et al.", "others", "and others", "..."})
#: what Scopus writes behind a full name
_NUMBER = re.compile(r"\s*\([0-9]+\)\s*$")


def joined(family: str, given: str = "", suffix: str = "") -> str:
    """Return a name of its parts; empty without any."""
    first = " ".join(filter(None, (_bare(given), _bare(suffix).rstrip(","))))
    return ", ".join(filter(None, (_bare(family), first)))


def group(name: str) -> str:
    """Return the name of a group, without commas."""
    return _bare(name.replace(",", " "))


def person(text: str, *, natural: bool = False) -> str:
    """Return one name as a source writes it in the common form; empty if there is none.

    Args:
        text: ``Smith, John A., Jr``, ``Smith JA`` or a group; a comma at the end marks a group, too.
        natural: whether ``John A. Smith`` is a person; otherwise it is kept as it stands.
    """
    name = _bare(text)
    if name.lower() in _OTHERS:
        return MORE
    if name.endswith(","):
        return group(name)
    if "," in name:
        family, *rest = (part for part in name.split(",") if part.strip())
        return joined(family, " ".join(rest))
    if found := _INITIALS.fullmatch(name):
        return joined(found["family"], found["given"], found["suffix"] or "")
    words = name.split()
    if not natural or not 1 < len(words) <= _WORDS or _GROUP.search(name):
        return name
    # the family name begins with its particles: Ludwig van der Berg
    last = len(words) - 1
    while last > 1 and _PARTICLE.fullmatch(words[last - 1]):
        last -= 1
    return joined(" ".join(words[last:]), " ".join(words[:last]))


def people(text: str) -> tuple[str, ...]:
    """Return the names of one text, as columns of tables hold them.

    Semicolons, line ends, bars or ``and`` part names. Otherwise commas do, unless the text is one name.
    """
    text = _SPACES.sub(" ", text)
    parts = re.split(r"\s*[;|\n]\s*", text)
    if len(parts) == 1 and _AND.search(text) and not _GROUP.search(text):
        parts = _AND.split(text)
        if not _whole(parts[0]):
            parts = [*_paired(parts[0].split(",")), *parts[1:]]
    elif len(parts) == 1 and "," in text and not _whole(text):
        parts = _paired(text.split(","))
    return kept(person(_NUMBER.sub("", part), natural=True) for part in parts)


def kept(names: Iterable[str]) -> tuple[str, ...]:
    """Return names without repetitions, and at most :data:`MOST`, then :data:`MORE`."""
    found = tuple(dict.fromkeys(filter(None, names)))
    return found if len(found) <= MOST else (*found[:MOST], MORE)


def parts_of(name: str) -> tuple[str, str]:
    """Return family name and given names; no given names: a group, or a person with one name."""
    family, _, given = name.partition(", ")
    return family, given


def short(name: str) -> str:
    """Return a name with initials, as MEDLINE writes it: ``Smith JA``."""
    family, given = parts_of(name)
    first = [word for word in re.split(r"[\s.-]+", given) if word]
    if first and re.fullmatch(_SUFFIX, first[-1]):
        first.pop()
    # JA is John Albert
    initials = (word if word.isupper() and len(word) < _LONG else word[0] for word in first)
    return " ".join(filter(None, (family, "".join(initials))))


def byline(names: tuple[str, ...]) -> str:
    """Return authors as a citation in a text names them: one, two, or the first ``et al.``; empty without any."""
    if len(names) == 2 and names[1] != MORE:
        return f"{short(names[0])} and {short(names[1])}"
    return f"{short(names[0])}{'' if len(names) == 1 else f' {MORE}'}" if names else ""


def _paired(parts: list[str]) -> list[str]:
    """Return names whose initials have commas, too, such as ``Smith, J., Doe, A.``, one by one."""
    families, givens = parts[::2], parts[1::2]
    if len(families) == len(givens) and all(map(_ONLY_INITIALS.fullmatch, givens)):
        return [f"{family},{given}" for family, given in zip(families, givens, strict=True)]
    return parts


def _whole(text: str) -> bool:
    """Return whether a text with commas is one name: ``Smith, John A.``, and not ``Smith J, Doe A``."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if len(parts) == 1:
        return True
    if len(parts) == 2:
        # of two people each has a given name or initials
        return " " not in parts[0] or (not _INITIALS.fullmatch(parts[0]) and " " not in parts[1])
    return len(parts) == 3 and re.fullmatch(_SUFFIX, parts[2]) is not None


def _bare(text: str) -> str:
    return " ".join(text.split()).strip(" ;")
