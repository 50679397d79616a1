"""Filters as SQL predicates that column indices answer, and the labels that they compare.

Names are stored as published, and again as :func:`labels`: in lower case, prefixed with their kind, all kinds in one
column. So comparison ignores case, and one index serves every field.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator

from posology.errors import InvalidQuery
from posology.types import Filters, Passage

#: the column of :func:`labels`
COLUMN = "labels"
#: no filters, the default of every search
NONE = Filters()
#: kind of a label → field of the filters
KINDS = {
    "journal": "journals",
    "type": "publication_types",
    "mesh": "mesh",
    "language": "languages",
}
#: by kind, the end of the error "no passage of the index …"
_UNKNOWN = {
    "journal": "is of the journal",
    "type": "is of the type",
    "mesh": "has the MeSH heading",
    "language": "is in the language",
}
#: range of valid years
MIN_YEAR, MAX_YEAR = 1500, 2100
#: maximum number of names in a field
MAX_NAMES = 50
#: maximum number of characters of a name; the longest journal titles have about 300
MAX_NAME = 400


def labels(passage: Passage) -> list[str]:
    """Return the labels that a passage can be filtered by, sorted and distinct."""
    names = {
        "journal": () if passage.journal is None else (passage.journal,),
        "type": passage.publication_types,
        "mesh": passage.mesh,
        "language": passage.languages,
    }
    return sorted({label(kind, name) for kind, found in names.items() for name in found})


def label(kind: str, name: str) -> str:
    """Return the label of a name, e.g. ``mesh:aspirin`` for ``Aspirin/*therapeutic use``.

    Case and runs of white space are ignored; so are the qualifiers and the star of a major topic in MeSH.
    """
    if kind == "mesh":
        name = name.partition("/")[0].lstrip("* ")
    return f"{kind}:{' '.join(unicodedata.normalize('NFC', name).split()).casefold()}"


def check(filters: Filters) -> None:
    """Check that filters are valid.

    Raises:
        InvalidQuery: a field is invalid; the error names it.
    """
    for name in ("since", "until"):
        year = getattr(filters, name)
        if year is not None and not MIN_YEAR <= year <= MAX_YEAR:
            raise InvalidQuery(
                f"{name} must be a year from {MIN_YEAR} to {MAX_YEAR} (got {year})",
                field=f"filters.{name}",
            )
    if None not in (filters.since, filters.until) and filters.since > filters.until:  # type: ignore[operator]
        raise InvalidQuery(
            f"since must be <= until (got since={filters.since}, until={filters.until}): since is the first year, until "
            "the last",
            field="filters.since",
        )
    for name in KINDS.values():
        _check_names(name, getattr(filters, name))


def where(filters: Filters, *, retracted: bool) -> str | None:
    """Return the predicate of the rows that may be found; ``None``: all of them.

    A passage with an unknown year, or unknown names, does not match a filter on them.

    Args:
        filters: the question's filters.
        retracted: whether to include retracted passages.
    """
    parts = [] if retracted else ["retracted = false"]
    if filters.since is not None:
        parts.append(f"year >= {int(filters.since)}")
    if filters.until is not None:
        parts.append(f"year <= {int(filters.until)}")
    parts.extend(
        f"array_has_any({COLUMN}, [{quoted(wanted)}])" for wanted in wanted_labels(filters)
    )
    return " AND ".join(parts) or None


def wanted_labels(filters: Filters) -> Iterator[dict[str, str]]:
    """Yield, for each filtered field, the labels of which a passage must have one, with the names as given."""
    for kind, field in KINDS.items():
        if names := getattr(filters, field):
            yield {label(kind, name): name for name in names}


def unknown(name: str, wanted: str, known: Iterable[str]) -> InvalidQuery:
    """Return the error of a name that no passage has.

    Args:
        name: the name as given.
        wanted: its label.
        known: names of that kind in the index, or some of them.
    """
    kind = wanted.partition(":")[0]
    near = nearest(name, known)
    hint = f": did you mean {' or '.join(near)}?" if near else ""
    return InvalidQuery(
        f"no passage of the index {_UNKNOWN[kind]} {name!r}{hint}", field=f"filters.{KINDS[kind]}"
    )


def nearest(name: str, known: Iterable[str], *, most: int = 3) -> list[str]:
    """Return the names nearest to a name: first those that contain it, shortest first, then similar spellings."""
    from difflib import get_close_matches

    folded = name.casefold().strip()
    spelt = {one.casefold(): one for one in known}
    holding = sorted((one for one in spelt if folded in one), key=lambda one: (len(one), one))
    alike = get_close_matches(folded, spelt, n=most)
    return [spelt[one] for one in dict.fromkeys((*holding[:most], *alike))][:most]


def literal(text: str) -> str:
    """Return a text as an SQL string literal, safe for any content.

    In DataFusion's dialect, which LanceDB uses, quotes are doubled and no other character is special.
    """
    return "'" + text.replace("'", "''") + "'"


def quoted(texts: Iterable[str]) -> str:
    """Return string literals for ``IN (…)``; for none, a value that matches nothing."""
    return ", ".join(map(literal, texts)) or "NULL"


def describe(filters: Filters) -> str:
    """Return the filters in words, e.g. ``published 2010 to 2020, of type Meta-Analysis``; empty without filters."""
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
            f"{field} must have <= {MAX_NAMES} names (got {len(names)})", field=f"filters.{field}"
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
                f"a name of {field} must have 1 to {MAX_NAME} characters and no NUL character",
                field=f"filters.{field}",
            )
