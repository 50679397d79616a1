"""Reader of RIS, also gzipped, as reference managers and databases export it."""

from __future__ import annotations

import re

from posology.corpus.references.tagged.form import Form
from posology.corpus.references.tagged.lines import Syntax

SUFFIXES = (".ris", ".ris.gz", ".txt", ".txt.gz")

#: the tags of the format, and those that databases add to it
_TAGS = (
    "A1 A2 A3 A4 A5 A6 AB AD AN AU AV BT C1 C2 C3 C4 C5 C6 C7 C8 CA CC CN CP CT CY DA DB DI DO DP ED EP ER ET FD H1 "
    "H2 ID IP IS J1 J2 JA JF JO JN K1 KW L1 L2 L3 L4 LA LB LK LL M1 M2 M3 N1 N2 NO NS NV OL OP PA PB PD PG PM PP PT "
    "PY RD RI RN RP RT SE SF SN SO SP SR ST SV T1 T2 T3 TA TI TS TT TY U1 U2 U3 U4 U5 UI UR VL VN VO WP WT WV XR Y1 "
    "Y2 YR"
)
_FORM = Form(
    source="ris",
    syntax=Syntax(
        tag=re.compile(r"\ufeff?([A-Z][A-Z0-9])  -(?=\s|\Z)(.*)", re.DOTALL),
        first="TY",
        last="ER",
        known=frozenset(_TAGS.split()),
        texts=frozenset({"AB", "N2"}),
        loose=re.compile(r"[\s\ufeff]*([A-Z][A-Z0-9])[ \t\xa0]*[-‐‑–—](?=\s|\Z)(.*)", re.DOTALL),
    ),
    # database and providers put identifiers into custom tags
    tags={
        "key": ("ID", "LB"),
        "text": ("AB", "N2"),
        "title": ("TI", "T1", "CT"),
        "authors": ("AU", "A1"),
        "doi": ("DO", "DI"),
        "pmcid": ("C2",),
        "journal": ("JA", "J2", "JF", "JO", "T2"),
        "date": ("PY", "Y1", "DA"),
        "types": ("M3", "PT"),
        "languages": ("LA",),
        "database": ("DB", "DP"),
        "accession": ("AN",),
        "notes": (
            "N1", "UR", "L2", "L3", "C1", "C2", "C3", "C5", "C6", "C7", "C8", "U2", "XR", "M1", "M2",
        ),
    },
    # databases write numbers, providers and searches before it
    start=re.compile(
        r"\A(?:[^\n]*\n){0,40}?[ \t\ufeff]*TY[ \t\xa0]*[-‐‑–—][ \t]*[A-Z]{3,10}[ \t]*\n\s*[A-Z][A-Z0-9][ \t\xa0]*[-‐‑–—](?:\s|\Z)"
    ),
)  # fmt: skip

begins, read, count = _FORM.begins, _FORM.read, _FORM.count
