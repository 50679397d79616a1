from __future__ import annotations

import csv
import io
import tempfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.corpus.items import Item, Record, Remark
from posology.corpus.references import tables
from posology.corpus.references.columns import Columns, header_of
from posology.corpus.references.tables import read
from posology.errors import BadFile, BadRecord, InputError
from posology.types import Passage


def write(folder: Path, content: str, *, encoding: str = "utf-8", name: str = "a.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode(encoding))
    return path


def passages(items: list[Item]) -> list[Passage]:
    return [item.passage for item in items if isinstance(item, Record)]


def bad(path: Path) -> BadFile:
    (only,) = read(path)
    assert isinstance(only, BadFile)
    return only


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        # PubMed, Scopus, Web of Science, Zotero, Rayyan, Europe PMC
        ("PMID,Title,Authors,Citation,First Author,Journal/Book,Publication Year,Create Date,PMCID,NIHMS ID,DOI",
         {"pmid": 0, "title": 1, "journal": 5, "date": 6, "pmcid": 8, "doi": 10}),
        ("Authors,Title,Year,Source title,DOI,Link,Abstract,PubMed ID,Document Type,Language of Original Document,EID",
         {"title": 1, "date": 2, "journal": 3, "doi": 4, "text": 6, "pmid": 7, "types": 8, "languages": 9}),
        ("PT,AU,TI,SO,LA,DT,AB,PY,DI,PM", {"title": 2, "journal": 3, "text": 6, "date": 7, "doi": 8, "pmid": 9}),
        ("Key,Item Type,Publication Year,Author,Title,Publication Title,DOI,Abstract Note,Extra",
         {"key": 0, "date": 2, "title": 4, "journal": 5, "doi": 6, "text": 7, "notes": 8}),
        ("key,title,year,journal,abstract,notes,pubmed_id,pmc_id", {"text": 4, "pmid": 6}),
        ("Titel,Abstract (English)", {"title": 0, "text": 1}),
        # Covidence, DistillerSR, EPPI-Reviewer, Embase, the Lens, Dimensions, ASReview, OpenAlex, Semantic Scholar
        ("Title,Authors,Abstract,Published Year,Published Month,Journal,Accession Number,DOI,Covidence #,Notes",
         {"title": 0, "authors": 1, "text": 2, "date": 3, "journal": 5, "accession": 6, "doi": 7, "notes": 9}),
        ("Refid,Title,Abstract,Author,Year of Publication", {"key": 0, "title": 1, "text": 2, "authors": 3, "date": 4}),
        ("ItemId,Title,ParentTitle,Year,Abstract", {"title": 1, "journal": 2, "date": 3, "text": 4}),
        ("TITLE,SOURCE TITLE,PUBLICATION YEAR,ABSTRACT,MEDLINE PMID", {"title": 0, "journal": 1, "date": 2, "pmid": 4}),
        ("Lens ID,Title,Date Published,Publication Year,Author/s,Abstract", {"title": 1, "date": 2, "authors": 4}),
        ("Publication ID,DOI,Title,Abstract,PubYear", {"doi": 1, "title": 2, "text": 3, "date": 4}),
        ("record_id,title,abstract,year,included", {"key": 0, "title": 1, "text": 2, "date": 3}),
        ("id,display_name,title,publication_year,is_retracted,abstract", {"title": 2, "date": 3, "retracted": 4}),
        ("paperId,title,abstract,externalIds.DOI,externalIds.PubMed,journal.name", {"doi": 3, "journal": 5}),
        ("dc:title,dc:description,prism:coverDate,prism:doi", {"title": 0, "text": 1, "date": 2, "doi": 3}),
        ("Titre,Résumé,Année", {"title": 0, "text": 1, "date": 2}),
        # words
        ("Abstract,Cover Date", {"date": 1}),
        ("Abstract,Received Date,Issue Date", {"date": 2}),
        ("Abstract,yr_published", {"date": 1}),
        ("Study title,Abstract (German),Abstract in English", {"title": 0, "text": 2}),
        ("Book Title,Article title,Abstract URL,Graphical abstract,Abstract", {"title": 1, "text": 4}),
        ("ID,Title and abstract", {"text": 1}),
    ],
)  # fmt: skip
def test_columns_are_known_by_their_names(names: str, columns: dict[str, int]) -> None:
    found = header_of(names.split(",")).columns
    assert {name: found[name][0] for name in columns} == columns


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("Date Added", "date"), ("Year accessed", "date"), ("Search year", "date"), ("Retraction Date", "date"),
        ("Citations per year", "date"), ("Last update", "date"), ("Journal ISSN", "journal"), ("Related DOI", "doi"),
        ("Retraction PMID", "pmid"), ("Author Affiliations", "authors"), ("Number of authors", "authors"),
        ("Short Title", "title"), ("Has abstract", "text"), ("Abstract URL", "text"),
    ],
)  # fmt: skip
def test_columns_of_something_else(name: str, field: str) -> None:
    assert field not in header_of([name]).columns


def test_a_number_is_a_pmid_only_where_the_row_names_the_database(tmp_path: Path) -> None:
    """An accession number of Covidence may be any database's; Europe PMC names it."""
    content = "Abstract,Accession Number,Source\nSalt.,31000001,MED\nSand.,31000002,PPR\n"
    assert [one.pmid for one in passages(list(read(write(tmp_path, content))))] == [
        "31000001",
        None,
    ]


def test_cells_that_hold_markup_or_a_formula(tmp_path: Path) -> None:
    content = (
        'Abstract,PMID\n"<p class=""a"">Salt <i class=""b"">helped</i>.</p>","=""31000001"""\n'
    )
    (passage,) = passages(list(read(write(tmp_path, content))))
    assert (passage.text, passage.pmid) == ("Salt helped.", "31000001")


def test_an_abstract_in_several_columns(tmp_path: Path) -> None:
    content = "Title,Abstract,Abstract,Abstract (German)\nA,Salt.,It helped.,\nB,,Sand.,Der Sand.\n"
    *found, remark = read(write(tmp_path, content))
    assert [one.text for one in passages(found)] == ["Salt.\nIt helped.", "Sand."]
    assert isinstance(remark, Remark)
    assert "Abstract (German)" in remark.reason


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_delimiters_encodings_and_line_ends(
    tmp_path: Path, delimiter: str, encoding: str, end: str
) -> None:
    rows = [["Title", "Abstract", "PMID"], ["Salt, 5;6|7", "It helped:\n≥ 5 µg.", "12"]]
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(rows)
    (record,) = read(write(tmp_path, out.getvalue(), encoding=encoding))
    assert isinstance(record, Record)
    assert record.passage.id == "pmid:12"
    assert record.passage.title == "Salt, 5;6|7"
    assert record.passage.text == "It helped:\n≥ 5 µg."


def test_a_line_that_names_the_delimiter(tmp_path: Path) -> None:
    (record,) = read(write(tmp_path, "sep=;\nabstract;title, year\nSalt helped.;Salt\n"))
    assert isinstance(record, Record)
    assert (record.line, record.passage.text) == (3, "Salt helped.")


def test_pubmeds_own_csv_has_no_abstracts_and_that_is_said_once(tmp_path: Path) -> None:
    names = "PMID,Title,Authors,Citation,First Author,Journal/Book,Publication Year,Create Date,PMCID,NIHMS ID,DOI"
    fault = bad(write(tmp_path, f"{names}\n1,Salt,,,,,2012,,,,\n2,Sand,,,,,2012,,,,\n"))
    assert fault.line is None
    assert "Format PubMed" in fault.reason


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("Title,PMID\nSalt,1\n", "columns: Title, PMID"),
        ("a,b\n1,2\n", "a, b"),
        ('"Title,Abstract\nSalt,It helped.\n', "quote"),
        ("T\0i\0t\0l\0e\0", "NUL"),
        ("", "no record"),
        ("\n\n", "no record"),
        ("title,abstract\n", "no record"),
    ],
)
def test_tables_that_are_not_read(tmp_path: Path, content: str, named: str) -> None:
    assert named in bad(write(tmp_path, content)).reason


def test_a_byte_that_is_no_utf8_is_named_and_the_other_rows_are_read(tmp_path: Path) -> None:
    content = "title,abstract,pmid\nSalt,A dose of 5 µg.,1\nSand,None was given.,2\n"
    first, second = read(write(tmp_path, content, encoding="cp1252"))
    assert isinstance(first, BadRecord)
    assert (first.line, first.record) == (2, "pmid:1")
    assert "0xB5" in first.reason
    assert "dose of 5" in first.reason
    assert isinstance(second, Record)


def test_a_missing_quote_costs_its_rows_and_no_text_of_another_is_taken(tmp_path: Path) -> None:
    content = (
        "title,abstract,pmid\n"
        'Salt,"Salt helped.,1\n'
        'Sand,"Sand did not.",2\n'
        "Clay,Clay hurt none.,3\n"
        'Mud,"Mud was "not" given.",4\n'
        "Iron,Iron was given.,5\n"
    )
    items = list(read(write(tmp_path, content)))
    assert [p.text for p in passages(items)] == ["Clay hurt none.", "Iron was given."]
    assert [item.line for item in items if isinstance(item, BadRecord)] == [2, 5]


def test_a_quote_that_is_never_closed(tmp_path: Path) -> None:
    first, last = read(write(tmp_path, 'title,abstract\nSalt,It helped.\nSand,"It did'))
    assert isinstance(first, Record)
    assert isinstance(last, BadRecord)
    assert last.line == 3


def test_rows_may_lack_empty_cells_at_their_end(tmp_path: Path) -> None:
    items = list(read(write(tmp_path, "title,abstract,pmid,doi\nSalt,It helped.\nSand,No.,2,,x\n")))
    assert [p.title for p in passages(items)] == ["Salt"]
    assert isinstance(items[1], BadRecord)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"pmid": "12.0"}, {"id": "pmid:12", "pmid": "12"}),
        ({"pmid": "PMID: 0012"}, {"id": "pmid:12"}),
        ({"pmid": "https://pubmed.ncbi.nlm.nih.gov/12/"}, {"id": "pmid:12"}),
        ({"doi": "https://doi.org/10.1000/A(1)b."}, {"id": "doi:10.1000/a(1)b"}),
        ({"doi": "doi:10.1000/a)"}, {"id": "doi:10.1000/a"}),
        ({"pmcid": "3395386", "doi": "10.1000/a"}, {"id": "doi:10.1000/a", "pmcid": None}),
        ({"pmcid": "PMC3395386", "doi": "10.1000/a"}, {"id": "pmcid:PMC3395386"}),
        ({"extra": "Comment in PMID: 77"}, {"pmid": None}),
        ({"extra": "tex: no\nPMID: 77"}, {"id": "pmid:77"}),
        ({"year": "2012.0"}, {"year": 2012, "published": "2012"}),
        ({"year": "2012", "date": "July 5, 2012"}, {"year": 2012}),
        ({"date": "2012-07-05"}, {"year": 2012, "published": "2012-07-05"}),
        ({"date": "2012-02-31"}, {"published": "2012-02"}),
        ({"date": "9999-01"}, {"year": None}),
        ({"language": "English; fr"}, {"languages": ("eng", "fre")}),
        ({"language": "Klingon"}, {"languages": ()}),
        ({"document type": "Review | letter"}, {"publication_types": ("Review", "Letter")}),
        ({"mesh": "Salt; Humans"}, {"mesh": ("Salt", "Humans")}),
        ({"pmid": "0"}, {"pmid": None}),
        ({"retracted": "Yes"}, {"retracted": True}),
        ({"document type": "Retracted"}, {"retracted": True}),
        ({"title": "RETRACTED: Salt"}, {"retracted": True}),
    ],
)  # fmt: skip
def test_fields(tmp_path: Path, values: dict[str, str], expected: dict[str, object]) -> None:
    out = io.StringIO()
    csv.writer(out).writerows([["abstract", *values], ["Salt helped.", *values.values()]])
    (record,) = read(write(tmp_path, out.getvalue()))
    assert isinstance(record, Record)
    assert {name: getattr(record.passage, name) for name in expected} == expected


NO_ABSTRACT = ("", " ", "[No abstract available]", "N/A", "nan", "\x00")


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        *(("Of salt,Salt.," + value, "pmid") for value in ("12a", "-3", "1 2")),
        *((f"Of salt,{value},", 'has no abstract ("Of salt")') for value in NO_ABSTRACT),
    ],
)
def test_a_row_without_what_it_needs_is_a_bad_record(
    tmp_path: Path, cells: str, reason: str
) -> None:
    (item,) = read(write(tmp_path, f"title,abstract,pmid\n{cells}\n"))
    assert isinstance(item, BadRecord)
    assert item.record is None
    assert reason in item.reason


def test_ids_stay_when_rows_are_added(tmp_path: Path) -> None:
    rows = ["Salt,Salt helped.", "Reply,We agree.", "Reply,We do not."]
    before = passages(list(read(write(tmp_path, "\n".join(["title,abstract", *rows])))))
    after = passages(list(read(write(tmp_path, "\n".join(["title,abstract", "New,New.", *rows])))))
    assert len({p.id for p in before}) == 3
    assert [p.id for p in after[1:]] == [p.id for p in before]
    keyed = passages(list(read(write(tmp_path, "ID,abstract\n17,Salt helped.\n"))))
    assert keyed[0].id == f"file:{tmp_path.name}/a.csv:17"


@pytest.mark.slow
def test_huge_cells_rows_and_lines_are_never_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MAX_ROW", 300_000)
    path = tmp_path / "a.csv"
    with path.open("w") as out:
        out.write("title,abstract\nSalt,It helped.\n")
        out.write('"' + "x" * 8_000_000 + '",b\n')
        out.write("a,b" + ",c" * 2_000_000 + "\n")
        out.write("Sand,It did not.\n")
        # one record of cells that each have a line of their own
        out.writelines('"\n",' for _ in range(200_000))
    tracemalloc.start()
    titles = [item.passage.title for item in read(path) if isinstance(item, Record)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert titles == ["Salt", "Sand"]
    assert peak < 30_000_000


_CELL = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=40)


@given(st.lists(st.tuples(_CELL, _CELL), min_size=1, max_size=5), st.sampled_from(",;\t|"))
def test_what_was_written_is_read(rows: list[tuple[str, str]], delimiter: str) -> None:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows([("title", "abstract"), *rows])
    with tempfile.TemporaryDirectory() as folder:
        items = list(read(write(Path(folder), out.getvalue())))
    expected = [fields for fields in rows if any(cell.strip() for cell in fields)]
    assert len([item for item in items if not isinstance(item, BadFile)]) == len(expected)
    for (_, text), item in zip(expected, items, strict=False):
        if isinstance(item, Record):
            assert _bare(item.passage.text) == _bare(text)
        else:
            assert not _bare(text) or "no abstract" in str(item)


def _bare(text: str) -> str:
    import unicodedata

    return "".join(c for c in unicodedata.normalize("NFC", text) if c.isalnum())


NAMED = "Article,Summary of it,Id,When\nSalt,Salt helped.,77,2012\n"


def test_columns_are_named_beside_the_guesses(tmp_path: Path) -> None:
    path = write(tmp_path, NAMED)
    assert "--column text=NAME" in bad(path).reason
    assert "Article, Summary of it, Id, When" in bad(path).reason
    columns = Columns.of(["title=Article", "abstract=Summary of it", "pmid=id", "year = When"])
    (passage,) = passages(list(read(path, columns=columns)))
    assert (passage.title, passage.text) == ("Salt", "Salt helped.")
    assert (passage.pmid, passage.year) == ("77", 2012)
    assert tables.count(path, columns=columns) == 1
    assert tables.count(path) == 0


def test_a_named_column_is_taken_instead_of_the_guess(tmp_path: Path) -> None:
    path = write(tmp_path, "abstract;Abstract;title\nNo.;Yes.;Salt\n")
    assert passages(list(read(path)))[0].text == "No."
    columns = Columns.of(["text=Abstract"])
    (passage,) = passages(list(read(path, columns=columns)))
    assert (passage.text, passage.title) == ("Yes.", "Salt")


def test_a_named_column_that_is_not_there_is_not_guessed(tmp_path: Path) -> None:
    path = write(tmp_path, "title,abstract\nSalt,Helped.\n")
    (only,) = read(path, columns=Columns.of(["text=Sumary"]))
    assert isinstance(only, BadFile)
    assert "has no column 'Sumary' (columns: title, abstract)" in only.reason


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["Summary"], "FIELD=NAME"),
        (["text="], "FIELD=NAME"),
        (["titel=Article"], "unknown field 'titel': fields are key, text, title"),
        (["text=A", "abstract=B"], "named twice"),
    ],
)
def test_what_names_no_column_is_an_error(given: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Columns.of(given)


def test_a_table_of_pmids_says_how_to_get_the_records(tmp_path: Path) -> None:
    assert "Format PubMed" in bad(write(tmp_path, "PMID\n31000001\n")).reason
