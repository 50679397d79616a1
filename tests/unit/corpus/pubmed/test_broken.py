from __future__ import annotations

import gzip
import hashlib
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from posology.corpus.items import Item, Record
from posology.corpus.pubmed import frames
from posology.corpus.pubmed.reader import count, read
from posology.errors import BadFile, BadRecord
from tests.support.growth import MOST, growth
from tests.support.pubmed_xml import article, document
from tests.unit.corpus.pubmed.files import items_of, shown, write

FIVE = [article(str(number)) for number in range(1, 6)]


def read_all(path: Path, *, after: int = 0) -> list[str]:
    return [shown(item) for item in read(path, after=after)]


def broken(record: str) -> bytes:
    return document(FIVE[0], record, FIVE[2])


def test_deletions_have_places_of_their_own(tmp_path: Path) -> None:
    path = write(tmp_path / "a.xml", document(*FIVE[:2], deleted=("7", "x", "9")))
    assert read_all(path) == [
        "1 pmid:1",
        "2 pmid:2",
        "3 -pmid:7",
        "4 bad: deletion without a PMID",
        "5 -pmid:9",
    ]
    assert count(path) == 5
    assert read_all(path, after=3) == ["4 bad: deletion without a PMID", "5 -pmid:9"]
    assert read_all(path, after=5) == []


@pytest.mark.parametrize(
    ("root", "inside", "expected"),
    [
        (
            "BookDocumentSet",
            '<DeleteDocument><PMID Version="1">7</PMID></DeleteDocument>',
            ["1 -pmid:7"],
        ),
        ("BookDocumentSet", "<DeleteDocument/>", []),
        ("PubmedArticleSet", "<DeleteCitation />", []),
        ("PubmedBookArticleSet", "", []),
    ],
)
def test_other_sets(tmp_path: Path, root: str, inside: str, expected: list[str]) -> None:
    items = items_of(tmp_path, document(inside, root=root), valid=False)
    assert [shown(item) for item in items] == expected


def test_records_without_a_set_and_sets_of_older_files(tmp_path: Path) -> None:
    alone = write(tmp_path / "alone.xml", FIVE[0].encode())
    assert read_all(alone) == ["1 pmid:1"]
    citation = FIVE[0].removeprefix("<PubmedArticle>").split("<PubmedData>")[0]
    old = write(tmp_path / "old.xml", document(citation, root="MedlineCitationSet"))
    assert read_all(old) == ["1 pmid:1"]


@pytest.mark.parametrize(
    "content", [b"<PubmedArticleSet/>", b"<PubmedArticleSet>\n</PubmedArticleSet >"]
)
def test_a_set_of_nothing(tmp_path: Path, content: bytes) -> None:
    assert read_all(write(tmp_path / "a.xml", content)) == []


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (
            FIVE[1].replace("</ArticleTitle>", ""),
            "Opening and ending tag mismatch: ArticleTitle and Article",
        ),
        (FIVE[1].replace("Some words.", "a & b"), "xmlParseEntityRef: no name"),
        (FIVE[1].replace("Some words.", "a &nbsp; b"), "Entity 'nbsp' not defined"),
        (FIVE[1].replace("Some words.", "a < b"), "StartTag: invalid element name"),
        (
            FIVE[1].replace("Some words.", "&#xD800;"),
            "xmlParseCharRef: invalid xmlChar value 55296",
        ),
        (FIVE[1].replace("Some words.", "\0"), "Char 0x0 out of allowed range"),
        (FIVE[1].replace("Some words.", "<![CDATA[ never closed"), "CData section not finished"),
        (FIVE[1].replace("Some words.", "<!-- never closed"), "Comment not terminated"),
        (
            FIVE[1].replace("Some words.", "<b>" * 300 + "</b>" * 300),
            "Excessive depth in document: 256",
        ),
    ],
)
def test_what_is_wrong_in_a_record_costs_that_record(
    tmp_path: Path, record: str, reason: str
) -> None:
    first, bad, last = items_of(tmp_path, broken(record), valid=False)
    assert (shown(first), shown(last)) == ("1 pmid:1", "3 pmid:3")
    assert isinstance(bad, BadRecord)
    assert str(bad).startswith(f"{tmp_path / 'set.xml'}:2 (pmid:2): not well-formed XML: ")
    assert reason in bad.reason
    assert "\n" not in bad.reason


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    content = broken(FIVE[1]).replace(b'">2</PMID>', b'">2</PMID>\xff\xfe', 1)
    first, bad, last = items_of(tmp_path, content, valid=False)
    assert (shown(first), shown(last)) == ("1 pmid:1", "3 pmid:3")
    assert isinstance(bad, BadRecord)
    assert bad.record == "pmid:2"


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (FIVE[1].replace("</PubmedArticle>", ""), "is not closed before the next begins"),
        (
            FIVE[1].replace("</PubmedArticle>", "</PubmedArtic"),
            "is not closed before the next begins",
        ),
        (FIVE[1][:200], "is not closed before the next begins"),
        ("words between records", "is no record of PubMed's"),
        ("<Other>" + FIVE[1].replace("PubmedArticle", "Pubmed"), "is no record of PubMed's"),
        ("<PubmedArticles>", "is no record of PubMed's"),
        ("</PubmedArticle>", "is no record of PubMed's"),
        ("<!-- not closed", "is no record of PubMed's"),
        ("<?not closed", "is no record of PubMed's"),
        ("<PubmedArticle/>", "has no MedlineCitation"),
        ("<PubmedBookArticle></PubmedBookArticle>", "has no BookDocument"),
    ],
)
def test_what_is_wrong_around_a_record_costs_no_other(
    tmp_path: Path, record: str, reason: str
) -> None:
    path = write(tmp_path / "a.xml", broken(record))
    assert read_all(path) == ["1 pmid:1", f"2 bad: {reason}", "3 pmid:3"]
    assert count(path) == 3


def test_the_last_record_is_not_closed(tmp_path: Path) -> None:
    content = document(*FIVE[:2]).replace(b"</PubmedArticle>\n</Pub", b"\n</Pub")
    items = items_of(tmp_path, content, valid=False)
    assert [shown(item) for item in items] == ["1 pmid:1", "2 bad: is not closed"]
    assert isinstance(items[1], BadRecord)
    assert items[1].record == "pmid:2"


def test_what_looks_like_a_tag_and_is_none(tmp_path: Path) -> None:
    tricky = FIVE[1].replace(
        "Some words.",
        "A<!-- </PubmedArticle><PubmedArticle> --><![CDATA[</PubmedArticle> <PubmedArticle>]]>.",
    )
    content = document(
        "<!-- <PubmedArticle> is no record -->", tricky, "<?pi <PubmedArticle> ?>", FIVE[2]
    )
    first, second = items_of(tmp_path, content)
    assert isinstance(first, Record)
    assert first.passage.text == "A</PubmedArticle> <PubmedArticle>."
    assert shown(second) == "2 pmid:3"


def test_a_file_that_ends_early_keeps_what_is_whole(tmp_path: Path) -> None:
    content = document(*FIVE)
    for end in range(content.index(b"<PubmedArticle>") + 1, len(content) - 1, 7):
        path = write(tmp_path / "a.xml", content[:end])
        *records, bad = read(path)
        assert all(isinstance(item, Record) for item in records)
        assert len(records) == content[:end].count(b"</PubmedArticle>")
        assert isinstance(bad, BadFile)
        assert bad.line == (len(records) or None)
        assert "it is not whole" in bad.reason
        assert count(path) == len(records)


def test_a_gzip_whose_checksum_is_wrong(tmp_path: Path) -> None:
    path = write(tmp_path / "a.xml.gz", document(*FIVE))
    packed = bytearray(path.read_bytes())
    packed[-8] ^= 1
    path.write_bytes(packed)
    *_, bad = read(path)
    assert isinstance(bad, BadFile)
    assert bad.reason.startswith("CRC check failed")


BOMB = b"""<!DOCTYPE PubmedArticleSet [
 <!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">
]>"""


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"not XML at all", "is no XML, or ends before its first element"),
        (b"<?xml version='1.0'?>\n<!-- <PubmedArticleSet>", "is no XML, or ends before"),
        (b"<PubmedArticleSet", "is no XML, or ends before"),
        (b"<html><body/></html>", "html"),
        (b"\xff\xfe<\0", "UTF-16"),
        (
            '<?xml version="1.0" encoding="utf-16"?><PubmedArticleSet/>'.encode("utf-16"),
            "UTF-16",
        ),
        (b'<?xml version="1.0" encoding="shift_jis"?><PubmedArticleSet/>', "shift_jis"),
        (BOMB + b"<PubmedArticleSet>&c;</PubmedArticleSet>", "declares entities of its own"),
        (
            b'<!DOCTYPE PubmedArticleSet [<!ENTITY x SYSTEM "file:///etc/passwd">]><PubmedArticleSet/>',
            "declares entities of its own",
        ),
        (b"\x1f\x8bno gzip", "Compressed file ended before"),
    ],
)
def test_what_is_no_file_of_pubmed(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "a.xml"
    path.write_bytes(content)
    (bad,) = read(path)
    assert isinstance(bad, BadFile)
    assert bad.line is None
    assert reason in bad.reason
    assert count(path) == 0


def test_what_comes_after_the_end(tmp_path: Path) -> None:
    content = document(FIVE[0])
    (only,) = items_of(tmp_path, content + b"\n<!-- done --><?pi?>\n")
    assert shown(only) == "1 pmid:1"
    _, bad = items_of(tmp_path, content + b"\n<html>Error 502</html>\n", valid=False)
    assert isinstance(bad, BadRecord)
    assert bad.line == 2
    assert "23 bytes are not read" in bad.reason


def test_records_behind_an_end_within_a_record_are_read(tmp_path: Path) -> None:
    content = document(FIVE[0], "<PubmedArticle></PubmedArticleSet>of <i>", *FIVE[1:])
    found = list(items_of(tmp_path, content, valid=False))
    assert [item.passage.id for item in found if isinstance(item, Record)] == [
        f"pmid:{number}" for number in range(1, 6)
    ]
    assert sum(isinstance(item, BadRecord) for item in found) == 2


def test_several_replies_in_one_file(tmp_path: Path) -> None:
    """As efetch's output is joined; one that holds nothing, and a record by itself."""
    empty = b"\n<?xml version='1.0'?>\n<PubmedArticleSet></PubmedArticleSet>"
    joined = document(*FIVE[:2]) + empty + b"\xef\xbb\xbf" + document(FIVE[2]) + FIVE[3].encode()
    assert [shown(item) for item in items_of(tmp_path, joined, valid=False)] == [
        f"{number} pmid:{number}" for number in range(1, 5)
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "UTF-8", "us-ascii", "iso-8859-1", "windows-1252"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    text = "caf&#233;" if encoding == "us-ascii" else "café"
    written = document(article(abstract=text)).decode().replace("utf-8", encoding, 1)
    bom = b"\xef\xbb\xbf" if encoding == "utf-8" else b""
    (item,) = items_of(tmp_path, bom + written.encode(encoding))
    assert isinstance(item, Record)
    assert item.passage.text == "café"


def test_the_latest_version_of_a_record_in_a_file_wins(tmp_path: Path) -> None:
    records = (
        article("1", version="1"),
        article("1", version="3"),
        article("1", version="2"),
        article("2", version="1"),
        article("2", version="1"),
        article("1", version="3"),
    )
    path = write(tmp_path / "a.xml", document(*records))
    expected = ["1 pmid:1", "2 pmid:1", "4 pmid:2", "5 pmid:2", "6 pmid:1"]
    assert read_all(path) == expected
    assert read_all(path, after=2) == expected[2:]
    assert count(path) == 6


def test_a_record_beyond_the_bound_is_never_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "MAX_RECORD", 100_000)
    long = article("2", abstract="x" * 3_000_000)
    unclosed = article("4", abstract="y" * 1_000_000).replace("</PubmedArticle>", "")
    comment = article("6", abstract="<!--" + "z" * 1_000_000)
    content = document(FIVE[0], long, FIVE[2], unclosed, FIVE[4], comment, article("7"))
    path = write(tmp_path / "a.xml.gz", content)
    del long, content
    tracemalloc.start()
    items = list(read(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [shown(item) for item in items] == [
        "1 pmid:1",
        "2 bad: longer than 100,000 bytes",
        "3 pmid:3",
        "4 bad: longer than 100,000 bytes",
        "5 pmid:5",
        "6 bad: longer than 100,000 bytes",
        "7 pmid:7",
    ]
    assert [item.record for item in items if isinstance(item, BadRecord)] == [
        "pmid:2",
        "pmid:4",
        "pmid:6",
    ]
    assert peak < 2_500_000
    assert count(path) == 7


@pytest.mark.parametrize(
    ("made", "few", "many", "more"),
    [
        # records of one document, and documents of one record
        (
            lambda n: document(*(article(f"{i + 1}", abstract="word " * 1_000) for i in range(n))),
            100,
            300,
            100_000,
        ),
        (lambda n: document(FIVE[0]) * n, 1_000, 4_000, 500_000),
    ],
)
def test_much_takes_no_more_memory_than_little(
    tmp_path: Path, made: Callable[[int], bytes], few: int, many: int, more: int
) -> None:
    def peak(count: int) -> int:
        path = write(tmp_path / "a.xml.gz", made(count))
        tracemalloc.start()
        total = sum(isinstance(item, Record) for item in read(path))
        reached = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert total == count
        return reached

    assert peak(many) < peak(few) + more


def test_many_comments_cost_no_more_than_their_length(tmp_path: Path) -> None:
    """Each is looked for once: a record of them that is never closed takes no square of the time."""
    content = document(FIVE[0])[:-30] + b"<PubmedArticle>" + b"<!--x--><!-- <![CDATA[" * 100_000
    path = write(tmp_path / "a.xml", content)
    assert len(list(read(path))) >= 1


def checksum(path: Path, text: str) -> None:
    path.with_name(path.name + ".md5").write_text(text)


def test_a_file_that_is_not_what_its_checksum_says_is_not_read(tmp_path: Path) -> None:
    path = write(tmp_path / "pubmed24n0001.xml.gz", document(*FIVE))
    right = hashlib.md5(path.read_bytes()).hexdigest()
    checksum(path, f"MD5({path.name})= {right}\n")
    assert len(read_all(path)) == 5
    path.write_bytes(gzip.compress(document(*FIVE[:4])))
    items: list[Item] = list(read(path))
    (bad,) = items
    assert isinstance(bad, BadFile)
    assert right in bad.reason
    assert hashlib.md5(path.read_bytes()).hexdigest() in bad.reason


@pytest.mark.parametrize(
    "record",
    ["<PubmedArticle/>", "<PubmedArticle><a></b></PubmedArticle>", "<PubmedArticle>", "<What/>"],
)
def test_what_is_wrong_is_not_said_of_the_next_record(tmp_path: Path, record: str) -> None:
    path = write(tmp_path / "a.xml", broken(record))
    (bad,) = (item for item in read(path) if isinstance(item, BadRecord))
    assert bad.record is None
    assert sum(isinstance(item, Record) for item in read(path)) == 2


@pytest.mark.parametrize(
    "unclosed",
    ["<PubmedArticle>", "<PubmedArticle><!-- ", "<PubmedArticle><?a ", "<PubmedArticle/><!-- "],
)
def test_many_records_that_are_not_closed_cost_no_more_than_their_length(
    tmp_path: Path, unclosed: str
) -> None:
    def look(count: int) -> None:
        path = write(tmp_path / "a.xml", document(FIVE[0], unclosed * count, FIVE[1]))
        found = list(read(path))
        assert sum(isinstance(item, BadRecord) for item in found) >= count
        good = [item.passage.id for item in found if isinstance(item, Record)]
        assert good == ["pmid:1", "pmid:2"]

    assert growth(look, 2_000) < MOST
