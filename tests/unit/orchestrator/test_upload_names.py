"""Names of uploaded files: a name is one component of a path of a known format, or refused."""

from __future__ import annotations

import os
from pathlib import Path, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.ingest.uploads.names import MAX_NAME, check_name
from posology.errors import BadFile, InvalidQuery


@pytest.mark.parametrize(
    "name",
    ["abstracts.jsonl", "abstracts.JSONL.gz", "pubmed26n0001.xml.gz", "Smith 2001 (final).pdf", "étude.txt",
     "阿司匹林.pdf", "a..b.csv", "readme.txt"],
)  # fmt: skip
def test_a_file_of_a_known_format_keeps_its_name(name: str) -> None:
    assert check_name(name) == name


def test_one_name_has_one_form() -> None:
    assert check_name("e\N{COMBINING ACUTE ACCENT}tude.txt") == "étude.txt"


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../a.jsonl", "/etc/passwd", "a/b.jsonl", "..\\a.jsonl", "C:\\a.jsonl", "C:a.jsonl",
     "a.jsonl\0", "a\0.jsonl", "a\n.jsonl", "a\x1b[2J.jsonl", "a\N{RIGHT-TO-LEFT OVERRIDE}.jsonl", "\ud800.jsonl",
     ".jsonl", ".hidden.jsonl", "-rf.jsonl", "~.jsonl", " a.jsonl", "a.jsonl ", "a.jsonl.", "a.jsonl::$DATA",
     "con.jsonl", "NUL.txt", "Com1.csv", "lpt\N{SUPERSCRIPT ONE}.pdf", "con .txt", "conin$.txt", "a*.csv", "a?.csv",
     "a|b.csv", "<a>.csv", '"a".csv', "x" * (MAX_NAME - 3) + ".csv", "é" * 100 + ".csv"],
)  # fmt: skip
def test_a_hostile_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidQuery) as refused:
        check_name(name)
    assert refused.value.field == "name"


@pytest.mark.parametrize(
    ("name", "instead"),
    [("refs.xlsx", "save it as CSV"), ("paper.doc", "save it as PDF"), ("a.zip", "unpack it"), ("a.exe", "formats are"),
     ("abstracts", "formats are"), ("a.jsonl.md5", "formats are")],
)  # fmt: skip
def test_what_no_reader_reads_is_refused_with_a_remedy(name: str, instead: str) -> None:
    with pytest.raises(BadFile, match=instead) as refused:
        check_name(name)
    assert refused.value.path == name


@given(st.text(max_size=60), st.sampled_from(["", ".csv", ".jsonl.gz", "/a.csv", "\\a.csv"]))
def test_whatever_is_accepted_stays_in_its_folder(start: str, end: str) -> None:
    try:
        name = check_name(start + end)
    except (InvalidQuery, BadFile):
        return
    folder = Path("/uploads/acme")
    assert Path(os.path.normpath(folder / name)).parent == folder
    assert (folder / name).name == name
    assert len(PureWindowsPath(name).parts) == 1
    assert len(os.fsencode(name)) <= MAX_NAME
    assert name == check_name(name)
