"""Citations for reference managers: RIS, BibTeX and CSL JSON.

Only articles that were quoted (of an answer) or listed (of a search) are cited, each once. What their source did not say is
left out; PMID and DOI let a reference manager complete it. The formats' own fields of pages are those of the article in its
journal: pages of a file that quotes stand on are in the note.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, count
from types import MappingProxyType
from typing import Any

from orchestrator.rendering.kinds import Format
from orchestrator.rendering.sources import articles, link, pages, warning
from orchestrator.rendering.words import safe
from posology.published.answers import Evidence, Source
from posology.text.names import MORE, parts_of

_TEX = MappingProxyType(
    {
        "\\": r"\textbackslash{}",
        # BibTeX counts the braces of \{ and \}, too
        "{": r"\textbraceleft{}",
        "}": r"\textbraceright{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
    }
)


_NOWHERE: Mapping[str, str] = MappingProxyType({})


def citations(of: Iterable[Source | Evidence], form: Format) -> str:
    """Return the citations of passages or quotes in a format; empty without any, or an empty list in CSL JSON.

    The notes of quoted articles name the pages of the quotes, where they are known.
    """
    given = list(of)
    quoted: dict[str, dict[str, None]] = {}
    for one in given:
        if isinstance(one, Evidence) and (where := pages(one)):
            quoted.setdefault(_article(one.passage), {})[where] = None
    sources = (one.passage if isinstance(one, Evidence) else one for one in given)
    return _FORMS[form](articles(sources), {name: ", ".join(some) for name, some in quoted.items()})


def ris(sources: Iterable[Source], quoted: Mapping[str, str] = _NOWHERE) -> str:
    """Return RIS records.

    Args:
        sources: the articles.
        quoted: pages of quotes by the article's id.
    """
    return "\n".join("".join(f"{tag}  - {_line(value)}\n" for tag, value in _ris(one, quoted)) for one in sources)  # fmt: skip


def bibtex(sources: Iterable[Source], quoted: Mapping[str, str] = _NOWHERE) -> str:
    """Return BibTeX entries; their keys are the passages' ids in letters and digits. See :func:`ris`."""
    used: set[str] = set()
    entries = []
    for one in sources:
        key = re.sub(r"[^A-Za-z0-9]+", "_", _article(one)).strip("_") or "passage"
        # BibTeX does not tell capitals in keys
        several = (f"{key}_{n}" for n in count(2))
        key = next(one for one in chain([key], several) if one.casefold() not in used)
        used.add(key.casefold())
        fields = "".join(f"  {name} = {{{value}}},\n" for name, value in _bibtex(one, quoted))
        entries.append(f"@{'article' if one.journal else 'misc'}{{{key},\n{fields}}}\n")
    return "\n".join(entries)


def csl(sources: Iterable[Source], quoted: Mapping[str, str] = _NOWHERE) -> str:
    """Return a list in CSL JSON. See :func:`ris`."""
    found = [dict(_csl(one, quoted)) for one in sources]
    return json.dumps(found, ensure_ascii=False, indent=2) + "\n"


def _ris(source: Source, quoted: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    # the type comes first and the end last, by the format
    yield "TY", "JOUR" if source.journal else "GEN"
    yield from _given(
        *(("AU", name) for name in source.authors if name != MORE),
        ("TI", source.title),
        ("JO", source.journal),
        ("PY", str(source.year) if source.year is not None else None),
        ("DA", source.published and source.published.replace("-", "/")),
        ("DO", source.doi),
        ("AN", source.pmid),
        ("C2", source.pmcid),
        ("UR", link(source)),
        ("N1", _note(source, quoted)),
    )
    yield "ER", ""


def _bibtex(source: Source, quoted: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    def verbatim(text: str | None) -> str | None:
        # addresses are not typeset, but their braces must balance
        return text and _line(text).replace("{", "%7B").replace("}", "%7D")

    title = _tex(source.title)
    yield from _given(
        ("author", " and ".join(map(_bibtex_name, source.authors))),
        # a second pair of braces keeps the capitals
        ("title", title and f"{{{title}}}"),
        ("journal", _tex(source.journal or "")),
        ("year", str(source.year) if source.year is not None else None),
        ("doi", verbatim(source.doi)),
        ("pmid", verbatim(source.pmid)),
        ("pmcid", verbatim(source.pmcid)),
        ("url", verbatim(link(source))),
        ("note", _tex(_note(source, quoted))),
    )


def _bibtex_name(name: str) -> str:
    family, given = parts_of(name)
    if name == MORE:
        return "others"
    # braces keep a group's name whole, and an "and" within a name from parting it
    whole = not given or " and " in f" {name} "
    return f"{{{_tex(name)}}}" if whole else _tex(f"{family}, {given}")


def _csl_name(name: str) -> dict[str, str]:
    family, given = parts_of(safe(name))
    return {"family": family, "given": given} if given else {"literal": family}


def _tex(text: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in _line(text))


def _csl(source: Source, quoted: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    yield "id", _article(source)
    yield "type", "article-journal" if source.journal else "document"
    yield from _given(
        ("title", safe(source.title)),
        ("container-title", source.journal and safe(source.journal)),
        ("DOI", source.doi),
        ("PMID", source.pmid),
        ("PMCID", source.pmcid),
        ("URL", link(source)),
        ("note", _note(source, quoted)),
    )
    if source.authors:
        yield "author", [_csl_name(name) for name in source.authors]
    parts = [int(part) for part in (source.published or "").split("-") if part.isdigit()]
    if parts or source.year is not None:
        yield "issued", {"date-parts": [parts or [source.year]]}


def _article(source: Source) -> str:
    return source.parent or source.id


def _note(source: Source, quoted: Mapping[str, str]) -> str:
    where = quoted.get(_article(source))
    return "; ".join(filter(None, (warning(source), where and f"quoted from {where} of the file")))


def _given(*fields: tuple[str, str | None]) -> Iterator[tuple[str, str]]:
    yield from ((name, value) for name, value in fields if value)


def _line(text: str) -> str:
    return " ".join(safe(text).split())


_FORMS: Mapping[Format, Callable[[Iterable[Source], Mapping[str, str]], str]] = MappingProxyType(
    {Format.RIS: ris, Format.BIBTEX: bibtex, Format.CSL: csl}
)
