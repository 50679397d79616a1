"""Reader of Web of Science's plain text (``savedrecs.txt``, ``.ciw``), also gzipped, of any of its databases.

https://webofscience.help.clarivate.com/en-us/Content/wos-core-collection/wos-core-collection-field-tags.htm. The
tab-delimited form has the same tags as names of columns, and is a table.
"""

from __future__ import annotations

import re
from pathlib import Path

from posology.corpus.pubmed.record import Parsed
from posology.corpus.references import fields
from posology.corpus.references.entries import Values
from posology.corpus.references.tagged.form import Form
from posology.corpus.references.tagged.lines import Syntax

SUFFIXES = (".ciw", ".ciw.gz", ".txt", ".txt.gz")


class _WebOfScience(Form):
    """Its day and month stand beside the year."""

    __slots__ = ()

    def build(self, values: Values, path: Path) -> Parsed:
        found = self.fields(values)
        days = values.get("PD", ())
        found["date"] = [f"{year} {day}" for year in found["date"] for day in days] + found["date"]
        return fields.parsed(found, path, source=self.source)


_FORM = _WebOfScience(
    source="web of science",
    syntax=Syntax(
        # continuations are indented
        tag=re.compile(r"\ufeff?([A-Z][A-Z0-9])(?: (.*)|\s*\Z)", re.DOTALL),
        first="PT",
        last="ER",
        outside=frozenset({"FN", "VR", "EF"}),
    ),
    tags={
        "key": ("UT",),
        "text": ("AB",),
        "title": ("TI",),
        "authors": ("AF", "AU", "CA"),
        "doi": ("DI", "D2"),
        "pmid": ("PM",),
        "journal": ("SO", "JI", "J9"),
        "date": ("PY",),
        "types": ("DT",),
        "languages": ("LA",),
        "accession": ("UT",),
    },
    start=re.compile(
        r"\A\s*(?:FN [^\n]{2,80}\nVR 1|PT [A-Z]\n(?:(?:[A-Z][A-Z0-9] | {3})[^\n]*\n)*?(?:TI|AB|SO) )"
    ),
    lines=frozenset({"authors"}),
)

begins, read, count = _FORM.begins, _FORM.read, _FORM.count
