"""Reader of EndNote's tagged text (``.enw``, refer and BibIX), also gzipped, as publishers and Google Scholar offer it."""

from __future__ import annotations

import re

from posology.corpus.references.tagged.form import Form
from posology.corpus.references.tagged.lines import Syntax

SUFFIXES = (".enw", ".enw.gz", ".txt", ".txt.gz")

_FORM = Form(
    source="endnote",
    syntax=Syntax(
        tag=re.compile(r"\ufeff?(%[0-9A-Z@!?$&*+#>~^<\[])(?:\s(.*)|\s*\Z)", re.DOTALL),
        first="%0",
        texts=frozenset({"%X"}),
    ),
    tags={
        "key": ("%M", "%F", "%L"),
        "text": ("%X",),
        "title": ("%T",),
        "authors": ("%A",),
        "doi": ("%R",),
        "pmcid": ("%2",),
        "journal": ("%J", "%B"),
        "date": ("%D", "%8"),
        "types": ("%9",),
        "languages": ("%G",),
        "database": ("%~", "%W"),
        "accession": ("%M",),
        "notes": ("%Z", "%U", "%O", "%<", "%2", "%3"),
    },
    start=re.compile(r"\A\s*(?:%[A-Z] [^\n]*\n){0,3}%0 [A-Z][^\n]{2,60}\n"),
)

begins, read, count = _FORM.begins, _FORM.read, _FORM.count
