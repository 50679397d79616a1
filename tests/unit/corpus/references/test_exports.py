"""What databases and reference managers write as text: read, or refused by name, and prose if nothing else fits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from posology.corpus import files
from posology.corpus.items import Item, Record, Remark
from posology.errors import BadFile, BadRecord
from posology.types import UNREADABLE, Passage

WOS = """FN Clarivate Analytics Web of Science
VR 1.0
PT J
AU Marlow, P
   Quint, A
TI Salt for
   thirst
SO NOTES ON SALT
DT Article
AB Salt helped
   in all.
PY 2019
PD MAR 5
PM 31000001
UT WOS:1
ER

PT J
TI Sand
DT Article; Retracted Publication
AB Sand did not.
PY 2018
UT WOS:2
ER

EF
"""
TABBED = (
    "PT\tAU\tTI\tSO\tDT\tAB\tPY\tPM\n"
    "J\tMarlow, P; Quint, A\tSalt for thirst\tNOTES ON SALT\tArticle\tSalt helped in all.\t2019\t31000001\n"
    "J\tBane, C\tSand\tNOTES ON SALT\tRetracted Publication\tSand did not.\t2018\t\n"
)
COCHRANE = """Record #1 of 2
ID: CN-1
AU: Marlow P
AU: Quint A
TI: Salt for thirst
SO: Notes on Salt
YR: 2019
PM: PUBMED 31000001
PT: Journal article
AB: Salt helped in all.

Record #2 of 2
ID: CD2
TI: Sand (Withdrawn)
YR: 2018
AB: Sand did not.
"""
OVID = """<1>
UI  - 31000001
DB  - Ovid MEDLINE(R)
TI  - Salt for thirst
AU  - Marlow P
SO  - Notes on Salt. 1(2):3-4, 2019 Mar.
AB  - Salt helped in all.
PT  - Journal Article

<2>
UI  - 31000002
DB  - Ovid MEDLINE(R)
TI  - Sand
AB  - Sand did not.
YR  - 2018
CM  - Retraction in: Notes. 2020;1:1
"""
NAMED = """<1>
Unique Identifier
  31000001
Title
  Salt for thirst
Source
  Notes on Salt. 1(2):3-4, 2019 Mar.
Abstract
  Salt helped in all.

<2>
Unique Identifier
  31000002
Title
  Sand
Abstract
  Sand did not.
Date of Publication
  2018
Comments
  Retraction in: Notes. 2020;1:1
"""
SEARCH = "Database: Ovid MEDLINE(R) ALL\nSearch Strategy:\n-----\n1     salt.mp. (12)\n-----\n"
SENT = OVID.replace("<1>\n", "VN  - Ovid Technologies\n").replace(
    "<2>\n", "VN  - Ovid Technologies\n"
)
MEDLINE = """PMID- 31000001
DP  - 2019 Mar
TI  - Salt for thirst
AB  - Salt helped
      in all.
SO  - Notes.

PMID- 31000002
DP  - 2018
TI  - Sand
AB  - Sand did not.
PT  - Retracted Publication
SO  - Notes.
"""
RIS = """TY  - JOUR
TI  - Salt for thirst
AB  - Salt helped in all.
PY  - 2019
ER  -

TY  - JOUR
TI  - Sand
AB  - Sand did not.
PY  - 2018
M3  - Retracted
ER  -
"""
ENW = """%0 Journal Article
%T Salt for thirst
%D 2019
%X Salt helped in all.

%0 Journal Article
%T Sand
%D 2018
%X Sand did not.
%Z Retraction in: Notes.
"""
REFWORKS = """RT Journal Article
SR Electronic(1)
ID 1
T1 Salt for thirst
YR 2019
AB Salt helped in all.

RT Journal Article
SR Electronic(1)
ID 2
T1 RETRACTED: Sand
YR 2018
AB Sand did not.
"""


def items(folder: Path, content: str | bytes, name: str = "export.txt") -> list[Item]:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(files.read(path))


def passages(found: list[Item]) -> list[Passage]:
    assert not [item for item in found if isinstance(item, Remark | BadRecord | BadFile)]
    return [item.passage for item in found if isinstance(item, Record)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("savedrecs.txt", WOS),
        ("savedrecs.ciw", WOS),
        ("savedrecs.txt", WOS.partition("VR 1.0\n")[2]),
        ("savedrecs.txt", TABBED),
        ("savedrecs.tsv", TABBED),
        ("citation-export.txt", COCHRANE),
        ("citation-export.txt", f"Search Name: salt\nDate Run: 1/3/2020\n\n{COCHRANE}"),
        ("ovid.txt", OVID),
        ("ovid.txt", SEARCH + OVID),
        ("ovid.ovd", NAMED),
        ("ovid.cgi", SENT),
        ("pubmed.txt", MEDLINE),
        ("pubmed.ris", MEDLINE),
        ("export.txt", RIS),
        ("export.txt", f"Provider: any\nContent: text\n\n{RIS}"),
        ("export.ris", RIS.replace("  - ", " - ")),
        ("export.ris", RIS.replace("\n", "\n ").replace("TY", " TY", 1)),
        ("export.txt", ENW),
        ("export.enw", ENW),
        ("export.txt", REFWORKS),
        ("export", WOS),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "crlf"])
def test_exports_are_read_as_references(
    tmp_path: Path, name: str, content: str, encoding: str
) -> None:
    if encoding == "crlf":
        content, encoding = content.replace("\n", "\r\n"), "utf-8"
    first, second = passages(items(tmp_path, content.encode(encoding), name))
    assert first.title == "Salt for thirst"
    assert " ".join(first.text.split()) == "Salt helped in all."
    assert (first.year, second.year) == (2019, 2018)
    assert second.text == "Sand did not."
    assert (first.retracted, second.retracted) == (False, True)
    assert first.source != "text"
    assert first.pmid == ("31000001" if "31000001" in content else None)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (("1. Notes. 2019 Mar;1(2):3-4. doi: 10.5555/a.\n\nSalt.\n\nMarlow P.\n\nIt helped.\n\nPMID: 31000001\n\n\n"
         "2. Notes. 2018;1:1.\n\nSand.\n\nIt did not.\n\nPMID: 31000002\n"), "PubMed's Abstract form, of 2 records"),
        ("1: Marlow P. Salt. Notes. 2019;1:3. PMID: 31000001.\n\n2: Bane C. Sand.\nPMID: 31000002.\n",
         "PubMed's Summary form"),
        ("31000001\n31000002\n", "2 PMIDs"),
        ("10.5555/a.1\nhttps://doi.org/10.5555/b.2\n", "2 DOIs"),
        ("Scopus\nEXPORT DATE: 01 Mar 2020\n\nMarlow P.\nSalt\n", "Scopus' plain text"),
        ("RECORD 1\n\nTITLE\nSalt\n\nABSTRACT\nIt helped.\n", "Embase's text"),
        ("Title:\nSalt\nAuthors:\nMarlow P\nAbstract:\nIt helped.\nDatabase:\nMEDLINE\n", "EBSCOhost's text"),
        ("Record: 1\nSalt\nAbstract:\nIt helped.\n", "EBSCOhost's text"),
        ("Report Information from ProQuest\n\nDocument 1 of 2\n\nSalt\n", "ProQuest's text"),
        ("@article{a,\n title = {Salt},\n}\n", "BibTeX"),
        ('<?xml version="1.0"?><PubmedArticleSet/>', "XML"),
        ("<!DOCTYPE html><html></html>", "a web page"),
        ('[{"title": "Salt", "abstract": "It helped."}]\n', "JSON"),
        ('{"title": "Salt", "abstract": "It helped."}\n', "JSON"),
        ("{\\rtf1 Salt}", "RTF"),
        ("PMID,Title,Authors,Citation,First Author,Journal/Book,Publication Year\n1,S,M,N,M,N,2019\n", ""),
    ],
)  # fmt: skip
def test_other_lists_are_refused_by_name(tmp_path: Path, content: str, named: str) -> None:
    for text in (content, content.replace("\n", "\r\n")):
        found = items(tmp_path, text)
        if named:
            (bad,) = found
            assert isinstance(bad, BadFile)
            assert named in bad.reason


@pytest.mark.parametrize(
    "content",
    [
        "Salt is old.\n\nIt helped (PMID: 31000001), again and again.\n",
        "1. Introduction\n\nSalt is old.\n\n2. Methods\n\nWe gave it.\n",
        "Title: Of salt\n\nAbstract: It helped.\n",
        "PT INR was measured.\nTI was 5.\nAB blood was given.\n",
        "AB  - is a blood group.\n",
        "TY is short for thank you.\n",
        "Records of salt, abstract, and title.\n",
        "Record of the first trial: 1\n",
        "RT is room temperature.\nSR is short.\n",
        "% of adults\n",
        "<1> is a mark.\n",
        "[1] Salt is old.\n",
        "{Salt} is old.\n",
    ],
)
def test_prose_stays_prose(tmp_path: Path, content: str) -> None:
    found = items(tmp_path, content)
    assert [item.passage.source for item in found if isinstance(item, Record)] == ["text"]


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.ris", "TY  - JOUR\nTI  - S\nAB  - Salt.\nAB  - It helped.\nAB  - End.\nER  - \n", "Salt.\nIt helped.\nEnd."),
        ("a.ris", "TY  - JOUR\nTI  - S\nAB  - Salt.\nN2  - Salt.\nER  - \n", "Salt."),
        ("a.ris", "TY  - JOUR\nTI  - S\nAB  - Salt\nN2  - Salt helped.\nER  - \n", "Salt helped."),
        ("a.ris", "TY  - JOUR\nTI  - S\nN2  - A note.\nAB  - Salt.\nER  - \n", "Salt."),
        ("a.ris", "TY  - JOUR\nTI  - S\nAB  - \nN2  - Salt.\nER  - \n", "Salt."),
        ("a.ris", "TY  - JOUR\nTI  - S\nAB  - Salt.\n\nIt helped.\nER  - \n", "Salt.\nIt helped."),
        ("a.nbib", "PMID- 7\nAB  - Salt.\nAB  - It helped.\nSO  - N.\n", "Salt.\nIt helped."),
        ("a.nbib", "PMID- 7\nAB  - Salt.\nOAB - Le sel.\nSO  - N.\n", "Salt."),
        ("a.nbib", "PMID- 7\nOAB - Le sel.\nOABL- fre\nOAB - Publisher: Salt.\nOABL- eng\nSO  - N.\n", "Salt."),
        ("a.enw", "%0 Journal Article\n%T S\n%X Salt.\n%X It helped.\n", "Salt.\nIt helped."),
        ("a.ciw", "PT J\nTI S\nAB Salt.\nAB It helped.\nER\n", "Salt.\nIt helped."),
        ("a.bib", "@article{a, title={S}, abstract={Salt.}, abstract={It helped.}}", "Salt.\nIt helped."),
        ("a.xml", "<xml><records><record><abstract>Salt.</abstract><abstract>It helped.</abstract></record></records></xml>",
         "Salt.\nIt helped."),
    ],
)  # fmt: skip
def test_repeated_fields(tmp_path: Path, name: str, content: str, text: str) -> None:
    (passage,) = passages(items(tmp_path, content, name))
    assert passage.text == text


@pytest.mark.parametrize(
    "abstract", ["Le sel a aidé.", "Publisher: Abstract available from the publisher."]
)
def test_a_foreign_abstract_is_none(tmp_path: Path, abstract: str) -> None:
    (found,) = items(
        tmp_path, f"PMID- 7\nTI  - S\nOAB - {abstract}\nOABL- fre\nSO  - N.\n", "a.nbib"
    )
    assert isinstance(found, BadRecord)
    assert found.reason == "has no abstract"


def test_references_of_one_key_are_told_apart(tmp_path: Path) -> None:
    """A study's name may be that of several articles; one that comes twice is one."""
    rows = [
        "ID,Title,Abstract",
        "Bane 2019,Salt,Salt helped.",
        "Bane 2019,Sand,Sand did not.",
        "Bane 2019,Salt,Salt helped.",
    ]
    content = "\n".join(rows)
    names = [one.id for one in passages(items(tmp_path, content, "a.csv"))]
    key = names[0]
    assert key.endswith(":Bane 2019")
    assert names[::2] == [key, key]
    assert re.fullmatch(f"{re.escape(key)}:[0-9a-f]{{8}}", names[1])
    again = files.read(tmp_path / "a.csv", after=2)
    assert [one.id for one in passages(list(again))] == names[1:]


@pytest.mark.parametrize(
    ("given", "code"), [("deu", "ger"), ("fra", "fre"), ("ger", "ger"), ("nld", "dut")]
)
def test_languages_are_medlines(tmp_path: Path, given: str, code: str) -> None:
    content = f"TY  - JOUR\nTI  - S\nAB  - Salt.\nLA  - {given}\nER  - \n"
    (passage,) = passages(items(tmp_path, content, "a.ris"))
    assert passage.languages == (code,)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.ris", "TY  - JOUR\nTI  - S\nAB  - Salt helped;\nIL  - 6 was low.\nER  - \n"),
        ("a.nbib", "PMID- 7\nTI  - S\nAB  - Salt helped;\nIL  - 6 was low.\nSO  - N.\n"),
    ],
)
def test_a_line_that_looks_like_a_field_is_no_silent_loss(
    tmp_path: Path, name: str, content: str
) -> None:
    found = items(tmp_path, content, name)
    (passage,) = (item.passage for item in found if isinstance(item, Record))
    assert passage.text.split() == ["Salt", "helped;", UNREADABLE]
    assert any(isinstance(item, Remark) and "'IL'" in item.reason for item in found)


def test_words_with_hyphens_are_no_fields(tmp_path: Path) -> None:
    content = "PMID- 7\nTI  - S\nAB  - Salt helped in\nSARS-CoV-2 and\nHIV-1.\nSO  - N.\n"
    (passage,) = passages(items(tmp_path, content, "a.nbib"))
    assert passage.text == "Salt helped in SARS-CoV-2 and HIV-1."


@pytest.mark.parametrize(
    ("content", "name"),
    [(WOS, "a.ciw"), (RIS, "a.ris"), (OVID, "a.ovd"), (COCHRANE, "a.txt"), (MEDLINE, "a.nbib"), (ENW, "a.enw")],
)  # fmt: skip
def test_a_file_that_ends_within_an_abstract_loses_that_record_alone(
    tmp_path: Path, content: str, name: str
) -> None:
    first, bad = items(tmp_path, content[: content.index("did not.")], name)
    assert isinstance(first, Record)
    assert isinstance(bad, BadRecord)
    assert "fetch it again" in bad.reason
