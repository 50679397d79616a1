"""Filters as a predicate that the table's own indices answer, and the names that it compares.

Names stand in the table as a reader sees them, and once more as :func:`labels`: in lower case, each with its kind
before it, all kinds in one column, so that names are compared in any case and one index serves every field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from posology.errors import InvalidQuery
from posology.types import Filters, Passage

#: the column of :func:`labels`
COLUMN = "labels"
#: no filters: what every search takes where it is given none
NONE = Filters()
#: the kind that stands before a label → the field of filters
KINDS = {
    "journal": "journals",
    "type": "publication_types",
    "mesh": "mesh",
    "language": "languages",
}
#: of a name that no passage has: "no passage of the index …"
_UNKNOWN = {
    "journal": "is of the journal",
    "type": "is of the type",
    "mesh": "has the MeSH heading",
    "language": "is in the language",
}
#: years that literature can be of
MIN_YEAR, MAX_YEAR = 1500, 2100
#: names of one field
MAX_NAMES = 50
#: characters of a name; the longest journal titles have about 300
MAX_NAME = 400


def labels(passage: Passage) -> list[str]:
    """What a passage may be filtered by, besides its year: each once, in order."""
    names = {
        "journal": () if passage.journal is None else (passage.journal,),
        "type": passage.publication_types,
        "mesh": passage.mesh,
        "language": passage.languages,
    }
    return sorted({label(kind, name) for kind, found in names.items() for name in found})


def label(kind: str, name: str) -> str:
    """The label of a name, e.g. ``mesh:aspirin`` for ``Aspirin/*therapeutic use``.

    Case, runs of white space, and of MeSH the qualifiers and the star of a major topic make no difference.
    """
    if kind == "mesh":
        name = name.partition("/")[0].lstrip("* ")
    return f"{kind}:{' '.join(name.split()).casefold()}"


def check(filters: Filters) -> None:
    """Refuse filters that can hold for nothing, or that no question needs.

    Raises:
        InvalidQuery: naming the field.
    """
    for name in ("since", "until"):
        year = getattr(filters, name)
        if year is not None and not MIN_YEAR <= year <= MAX_YEAR:
            raise InvalidQuery(
                f"{name} is the year {year}: give one from {MIN_YEAR} to {MAX_YEAR}",
                field=f"filters.{name}",
            )
    if None not in (filters.since, filters.until) and filters.since > filters.until:  # type: ignore[operator]
        raise InvalidQuery(
            f"nothing is published since {filters.since} and until {filters.until}: since is the first year, "
            "until the last",
            field="filters.since",
        )
    for name in KINDS.values():
        _check_names(name, getattr(filters, name))


def where(filters: Filters, *, retracted: bool) -> str | None:
    """The predicate of the rows that may be found; ``None``: all of them.

    A passage whose year or names are not known is not in it where they are asked for.

    Args:
        filters: of the question.
        retracted: whether retracted passages may be found.
    """
    parts = [] if retracted else ["retracted = false"]
    if filters.since is not None:
        parts.append(f"year >= {int(filters.since)}")
    if filters.until is not None:
        parts.append(f"year <= {int(filters.until)}")
    parts.extend(
        f"array_has_any({COLUMN}, [{', '.join(map(literal, wanted))}])"
        for wanted in wanted_labels(filters)
    )
    return " AND ".join(parts) or None


def wanted_labels(filters: Filters) -> Iterator[dict[str, str]]:
    """For each field that is filtered by, the labels of which a passage must have one, and the names as given."""
    for kind, field in KINDS.items():
        if names := getattr(filters, field):
            yield {label(kind, name): name for name in names}


def unknown(name: str, wanted: str, known: Iterable[str]) -> InvalidQuery:
    """The error of a name that no passage has.

    Args:
        name: as it was given.
        wanted: its label.
        known: names of that kind that the index has, or some of them.
    """
    kind = wanted.partition(":")[0]
    near = nearest(name, known)
    hint = f": did you mean {' or '.join(near)}?" if near else ""
    return InvalidQuery(
        f"no passage of the index {_UNKNOWN[kind]} {name!r}{hint}", field=f"filters.{KINDS[kind]}"
    )


def nearest(name: str, known: Iterable[str], *, most: int = 3) -> list[str]:
    """The names that come nearest to a name: those that hold it, the shortest first, then those that are spelt alike."""
    from difflib import get_close_matches

    folded = name.casefold().strip()
    spelt = {one.casefold(): one for one in known}
    holding = sorted((one for one in spelt if folded in one), key=lambda one: (len(one), one))
    alike = get_close_matches(folded, spelt, n=most)
    return [spelt[one] for one in dict.fromkeys((*holding[:most], *alike))][:most]


def literal(text: str) -> str:
    """A text as a literal of SQL: whatever stands in it, it is nothing but a text.

    In the dialect of DataFusion, which LanceDB reads, a quote is doubled and nothing else means anything.
    """
    return "'" + text.replace("'", "''") + "'"


def describe(filters: Filters) -> str:
    """The filters in words, e.g. ``published 2010 to 2020, of type Meta-Analysis``; empty where there are none."""
    return "; ".join(_described(filters))


def _described(filters: Filters) -> Iterable[str]:
    match filters.since, filters.until:
        case int() as since, int() as until:
            yield f"published {since} to {until}" if since != until else f"published in {since}"
        case int() as since, None:
            yield f"published in {since} or later"
        case None, int() as until:
            yield f"published in {until} or earlier"
    for words, names in (
        ("of type", filters.publication_types),
        ("in the journal", filters.journals),
        ("under the MeSH heading", filters.mesh),
        ("in the language", filters.languages),
    ):
        if names:
            yield f"{words} {' or '.join(names)}"


def _check_names(field: str, names: tuple[str, ...]) -> None:
    if len(names) > MAX_NAMES:
        raise InvalidQuery(
            f"{field} has {len(names)} names: give {MAX_NAMES} at most", field=f"filters.{field}"
        )
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise InvalidQuery(
                f"a name of {field} is not valid Unicode", field=f"filters.{field}"
            ) from None
        if not name.strip() or len(name) > MAX_NAME or "\0" in name:
            raise InvalidQuery(
                f"a name of {field} is empty, has more than {MAX_NAME} characters or holds a NUL character",
                field=f"filters.{field}",
            )
