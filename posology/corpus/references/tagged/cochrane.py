"""Reader of the Cochrane Library's plain text (``citation-export.txt``), also gzipped: reviews and trials."""

from __future__ import annotations

import re

from posology.corpus.references.tagged.form import Form
from posology.corpus.references.tagged.lines import Syntax

SUFFIXES = (".txt", ".txt.gz")

_TAGS = "ID|AU|TI|SO|YR|VL|NO|PG|PM|PT|KY|DOI|AB|US|CC|XR|SN|PB|ED|ET|CP|LA|CY|AN|DB|OT|UR|AF|CR|NT"
_FORM = Form(
    source="cochrane",
    syntax=Syntax(
        # a section of an abstract may begin "AIM: …"
        tag=re.compile(rf"\ufeff?(Record(?= #[0-9])|(?:{_TAGS})(?=:\s)):?(.*)", re.DOTALL),
        first="Record",
        preface=True,
        texts=frozenset({"AB"}),
    ),
    tags={
        "key": ("ID", "AN"),
        "text": ("AB",),
        "title": ("TI",),
        "authors": ("AU",),
        "doi": ("DOI",),
        "pmid": ("PM",),
        "journal": ("SO",),
        "date": ("YR",),
        "types": ("PT",),
        "languages": ("LA",),
        "notes": ("XR", "US", "UR"),
    },
    start=re.compile(
        r"(?:\A\s*+|\n[^\S\n]*+)Record #[0-9]+ of [0-9]+\s*\n(?:[^\n]*\n){0,4}?(?:ID|AN|AU|TI): "
    ),
    lines=frozenset({"authors"}),
)

begins, read, count = _FORM.begins, _FORM.read, _FORM.count
