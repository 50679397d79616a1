from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.corpus.files import kind_of
from posology.corpus.items import Notice, NoticeKind, Record
from posology.corpus.references.tagged import medline, ris
from posology.errors import BadFile, BadRecord
from posology.types import Passage
from tests.support.growth import MOST, growth
from tests.support.literature import NBIB, RIS


def write(folder: Path, content: bytes, name: str) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def nbib(folder: Path, *lines: str) -> Passage:
    content = "\n".join(["PMID- 7", "AB  - Salt helped.", *lines, "SO  - N.", ""])
    *_, record = medline.read(write(folder, content.encode(), "a.nbib"))
    assert isinstance(record, Record)
    return record.passage


def test_medline_is_read_as_biopython_reads_it(tmp_path: Path) -> None:
    from Bio import Medline

    theirs: list[Any] = list(Medline.parse(io.StringIO(NBIB.decode())))  # type: ignore[no-untyped-call]  # no types
    items = list(medline.read(write(tmp_path, NBIB, "a.nbib")))
    ours = {item.passage.pmid: item.passage for item in items if isinstance(item, Record)}
    assert [one["PMID"] for one in theirs] == ["201", "202", "203"]
    for one in theirs:
        if "AB" in one:
            passage = ours[one["PMID"]]
            assert passage.text == one["AB"]
            assert passage.publication_types == tuple(one["PT"])
            assert list(passage.languages) == one.get("LA", [])
        else:
            assert one["PMID"] not in ours


def test_a_retraction_reaches_the_record_and_its_copies(tmp_path: Path) -> None:
    content = (
        b"PMID- 7\nAB  - Salt.\nRIN - N. 2013;1:1. PMID: 8\nECI - N. 2012. PMID: 9\nSO  - N.\n"
    )
    *notices, record = medline.read(write(tmp_path, content, "a.nbib"))
    assert isinstance(record, Record)
    assert (record.passage.retracted, record.passage.concern) == (True, True)
    assert [(n.target, n.kind) for n in notices if isinstance(n, Notice)] == [
        ("pmid:7", NoticeKind.RETRACTION),
        ("pmid:7", NoticeKind.CONCERN),
    ]


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("DP  - 1998 Dec-1999 Jan", "published", "1998-12"),
        ("DEP - 20120705", "published", "2012-07-05"),
        ("AID - 10.1000/X [doi]", "doi", "10.1000/x"),
        ("LID - e123 [pii]", "doi", None),
        ("TI  - [Salt].", "title", "Salt."),
        ("TI  - Salt: a trial-\n      based study", "title", "Salt: a trial- based study"),
        ("BTI - A book", "title", "A book"),
        ("JT  - The Notes", "journal", "The Notes"),
        ("SI  - GENBANK/AB1234", "trials", ()),
        ("SI  - ISRCTN/ISRCTN12345678", "trials", ("ISRCTN12345678",)),
        ("UIN - N. PMID: 8", "same_work", ("pmid:8",)),
    ],
)
def test_medline_fields(tmp_path: Path, line: str, field: str, value: object) -> None:
    assert getattr(nbib(tmp_path, line), field) == value


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_file_that_ends_early_loses_its_last_record_only(tmp_path: Path, end: bytes) -> None:
    content = NBIB.replace(b"\n", end)
    cut = content[: content.index(b"retract it") + 4]
    *_, last = medline.read(write(tmp_path, cut, "a.nbib"))
    assert isinstance(last, BadRecord)
    assert "SO" in last.reason
    ids = [
        i.passage.id for i in medline.read(write(tmp_path, cut, "a.nbib")) if isinstance(i, Record)
    ]
    assert ids == ["pmid:201"]
    cut = RIS[: RIS.rindex(b"help") + 2]
    first, _, last = ris.read(write(tmp_path, cut, "a.ris"))
    assert isinstance(first, Record)
    assert isinstance(last, BadRecord)
    assert "ER" in last.reason


@pytest.mark.parametrize(
    ("content", "name", "kind"),
    [
        (NBIB, "pubmed-salt-set.txt", "medline"),
        (b"\xef\xbb\xbf\n" + NBIB, "a.txt", "medline"),
        (b"TY  - JOUR\nER  - \n", "savedrecs.txt", "ris"),
        (b"PMID-based search was done. It helped.", "a.txt", "text"),
        (b"Salt helped.", "a.txt", "text"),
        (b"", "a.txt", "text"),
        (b"anything", "a.ris", "ris"),
    ],
)
def test_texts_are_told_by_their_beginning(
    tmp_path: Path, content: bytes, name: str, kind: str
) -> None:
    found = kind_of(write(tmp_path, content, name))
    assert found is not None
    assert found.name == kind


def test_a_wrong_byte_and_a_long_record_cost_their_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("posology.corpus.references.tagged.lines.MAX_ENTRY", 1_000)
    content = (
        b"PMID- 1\nAB  - 5 \xb5g.\nSO  - N.\n\n"
        b"PMID- 2\nAB  - " + b"salt " * 500 + b"\nSO  - N.\n\n"
        b"PMID- 3\nAB  - Salt.\nSO  - N.\n"
    )
    items = list(medline.read(write(tmp_path, content, "a.nbib")))
    assert [i.passage.id for i in items if isinstance(i, Record)] == ["pmid:3"]
    wrong, long = [i for i in items if isinstance(i, BadRecord)][:2]
    assert (wrong.line, wrong.record) == (1, "pmid:1")
    assert "0xB5" in wrong.reason
    assert (long.line, "longer" in long.reason) == (5, True)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"words and words\n", b"\0\0\0"])
def test_a_file_without_records_is_a_bad_file(tmp_path: Path, content: bytes) -> None:
    for read, name in ((medline.read, "a.nbib"), (ris.read, "a.ris")):
        (only,) = read(write(tmp_path, content, name))
        assert isinstance(only, BadFile)


def test_an_abstract_of_many_lines_takes_time_in_proportion(tmp_path: Path) -> None:
    def work(lines: int) -> None:
        content = b"TY  - JOUR\nAB  - x\n" + b"y\n" * lines + b"ER  - \n"
        (item,) = ris.read(write(tmp_path, content, "a.ris"))
        assert isinstance(item, Record)

    assert growth(work, 20_000) < MOST


_WORDS = st.text("abcXYZ 0-./µ≥", min_size=1, max_size=60).filter(lambda text: text.strip())


@given(st.lists(st.tuples(_WORDS, _WORDS, st.integers(1, 10**8)), min_size=1, max_size=4))
def test_ris_that_was_written_is_read(rows: list[tuple[str, str, int]]) -> None:
    content = "".join(
        f"TY  - JOUR\nTI  - {title}\nAB  - a {text}\nN1  - PMID: {pmid}\nER  - \n"
        for title, text, pmid in rows
    )
    with tempfile.TemporaryDirectory() as folder:
        items = list(ris.read(write(Path(folder), content.encode(), "a.ris")))
    found = [item.passage for item in items if isinstance(item, Record)]
    assert [p.pmid for p in found] == [str(pmid) for _, _, pmid in rows]
    assert ["".join(p.text.split()) for p in found] == [
        "a" + "".join(text.split()) for _, text, _ in rows
    ]


@given(st.lists(st.tuples(_WORDS, _WORDS, st.integers(1600, 2100)), min_size=1, max_size=4))
def test_ris_that_rispy_wrote_is_read(rows: list[tuple[str, str, int]]) -> None:
    import rispy

    entries = [
        {
            "type_of_reference": "JOUR",
            "title": f"a {title}",
            "abstract": f"a {text}",
            "year": f"{year}/07/05/",
            "doi": f"10.1000/{number}",
            "journal_name": "Notes",
            "language": "English",
        }
        for number, (title, text, year) in enumerate(rows)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), rispy.dumps(entries).encode(), "a.ris")
        found = [item.passage for item in ris.read(path) if isinstance(item, Record)]
    assert [(p.id, p.published, p.journal, p.languages) for p in found] == [
        (f"doi:10.1000/{number}", f"{year}-07-05", "Notes", ("eng",))
        for number, (_, _, year) in enumerate(rows)
    ]
    for passage, (title, text, _) in zip(found, rows, strict=True):
        assert passage.title.split() == ["a", *title.split()]
        assert passage.text.split() == ["a", *text.split()]
