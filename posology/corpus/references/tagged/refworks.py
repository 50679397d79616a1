"""Reader of RefWorks' tagged text, also gzipped, which ProQuest and other databases offer."""

from __future__ import annotations

import re

from posology.corpus.references.tagged.form import Form
from posology.corpus.references.tagged.lines import Syntax

SUFFIXES = (".txt", ".txt.gz")

_TAGS = (
    "RT|SR|ID|A1|A2|A3|A4|A5|A6|AU|T1|T2|T3|TI|JF|JO|YR|FD|VO|IS|SP|OP|K1|AB|NO|PP|PB|ED|SN|AV|AD|AN|LA|CL|SF|OT|LK|DO|"
    "CN|DB|DS|IP|RD|ST|U[0-9]+|UL|SL|LL|CR|WT|WV|OL|C1|C2|C3|PM"
)
_FORM = Form(
    source="refworks",
    syntax=Syntax(
        # a line of an abstract may begin "IV infusion"
        tag=re.compile(rf"\ufeff?({_TAGS})(?: (.*)|\s*\Z)", re.DOTALL),
        first="RT",
        texts=frozenset({"AB"}),
    ),
    tags={
        "key": ("ID",),
        "text": ("AB",),
        "title": ("T1", "TI"),
        "authors": ("A1", "AU"),
        "doi": ("DO",),
        "pmid": ("PM",),
        "journal": ("JO", "JF"),
        "date": ("FD", "YR"),
        "languages": ("LA",),
        "database": ("DB", "DS"),
        "accession": ("AN",),
        "notes": ("NO", "UL", "LK", "U1", "U2", "U3", "U4", "U5"),
    },
    start=re.compile(r"\A\s*(?:<refworks>\s*)?RT [A-Z][A-Za-z ,/]{3,40}\s*\n(?:SR|ID|A1|AU|T1) "),
)

begins, read, count = _FORM.begins, _FORM.read, _FORM.count
