"""Registration numbers of trials, among the accession numbers that a record lists.

DTD pubmed_250101, element DataBankList; the names are NLM's
(https://www.nlm.nih.gov/bsd/medline_databank_source.html). Those of sequences and structures are left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from posology.corpus.pubmed.words import plain

if TYPE_CHECKING:
    from lxml.etree import _Element

#: names of registries, in small letters and digits alone
REGISTRIES = frozenset(
    {
        "anzctr", "chictr", "clinicaltrialsgov", "cris", "ctis", "ctri", "drks", "euctr", "eudract",
        "irct", "isrctn", "itmctr", "japicctr", "japiccti", "jmacct", "jprn", "jrct", "kct", "lbctr",
        "ltr", "nct", "ntr", "pactr", "phrr", "rebec", "repec", "rpcec", "slctr", "tctr", "umin",
        "uminctr",
    }
)  # fmt: skip

_OTHER = re.compile(r"[^a-z0-9]+")
_NCT = re.compile(r"NCT\s*([0-9]{8})", re.IGNORECASE)
_ISRCTN = re.compile(r"ISRCTN\s*([0-9]{8})", re.IGNORECASE)


def trials(article: _Element) -> tuple[str, ...]:
    """Return the registration numbers that an ``Article`` lists, each once, as their registries write them."""
    found: dict[str, None] = {}
    for bank in article.iterfind("DataBankList/DataBank"):
        name = bank.find("DataBankName")
        for number in bank.iterfind("AccessionNumberList/AccessionNumber"):
            if written := registered("" if name is None else name.text, number.text):
                found[written] = None
    return tuple(found)


def registered(bank: str | None, number: str | None) -> str | None:
    """Return a registration number as its registry writes it; ``None``: the data bank registers no trials."""
    if _OTHER.sub("", plain(bank).lower()) not in REGISTRIES:
        return None
    return _written(plain(number)) or None


def _written(number: str) -> str:
    for prefix, pattern in (("NCT", _NCT), ("ISRCTN", _ISRCTN)):
        if found := pattern.fullmatch(number):
            return prefix + found[1]
    return number
