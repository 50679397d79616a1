from __future__ import annotations

import gzip
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from posology.corpus.items import Deletion, Item, Notice, Record
from posology.corpus.pubmed.reader import count, read
from posology.corpus.pubmed.words import plain
from posology.errors import BadFile, BadRecord
from posology.types import UNREADABLE
from tests.support.examples import examples
from tests.support.pubmed_xml import article, comment, document
from tests.unit.corpus.pubmed.files import shown

# what XML 1.0 can hold, and says something; the composed form of some of it is another string, and `plain` says which
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\ufffe\uffff").filter(
    lambda c: (c in "\t\n\r" or ord(c) >= 0x20) and UNREADABLE not in plain(c)
)
WORDS = st.text(CHARACTERS, min_size=1, max_size=60).filter(lambda text: bool(plain(text)))
NUMBERS = st.integers(min_value=1, max_value=99_999_999).map(str)


def items_of(content: bytes, *, after: int = 0, packed: bool = False) -> list[Item]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.xml"
        path.write_bytes(gzip.compress(content) if packed else content)
        return list(read(path, after=after))


def places(content: bytes) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.xml"
        path.write_bytes(content)
        return count(path)


def markup(text: str) -> str:
    return escape(text).replace("\r", "&#13;")


@given(
    st.lists(
        st.tuples(NUMBERS, WORDS, st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=3)),
        min_size=1,
        max_size=4,
        unique_by=lambda record: record[0],
    ),
    st.booleans(),
)
def test_what_was_written_is_read(
    records: list[tuple[str, str, list[tuple[str, str]]]], packed: bool
) -> None:
    written = []
    for number, title, sections in records:
        lines = "".join(
            f'<AbstractText Label="S{i}">{markup(text)}<i>{markup(more)}</i></AbstractText>'
            for i, (text, more) in enumerate(sections)
        )
        written.append(article(number, title=f"T: {markup(title)}", sections=lines))
    items = items_of(document(*written), packed=packed)
    assert [shown(item) for item in items] == [
        f"{place} pmid:{number}" for place, (number, _, _) in enumerate(records, start=1)
    ]
    for item, (_, title, sections) in zip(items, records, strict=True):
        assert isinstance(item, Record)
        assert item.passage.title == plain(f"T: {title}")
        assert item.passage.text == "\n".join(
            f"S{i}: {plain(text + more)}" for i, (text, more) in enumerate(sections)
        )


RECORDS = (
    article("11", abstract="One &amp; <b>two</b> 10<sup>9</sup>."),
    article("12", abstract=None, comments=comment("RetractionOf", "11")),
    article("13", comments=comment("RetractionIn", "12") + comment("UpdateIn", "14")),
    "<!-- a comment with <PubmedArticle> in it -->",
    article("14", abstract="Zwei<![CDATA[ <drei> ]]>vier é."),
)
FILE = document(*RECORDS, deleted=("21", "22"))
PIECES = [
    b"<PubmedArticle>", b"</PubmedArticle>", b"<PubmedArticleSet>", b"</PubmedArticleSet>", b"<!--", b"-->",
    b"<![CDATA[", b"]]>", b"<?", b"?>", b"<DeleteCitation>", b"</DeleteCitation>", b"<PMID>3</PMID>", b"<",
    b">", b"&", b"\0", b"\xff", b"\xe9", b'"', b"<PubmedArticle/>", b"<PubmedBookArticle>", b"", b"\x1f\x8b",
    b"<!ENTITY a 'b'>", b"<?xml version='1.0' encoding='utf-16'?>", b"<AbstractText>", b"</sup>", b" ",
]  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    content = FILE
    for _ in range(draw(st.integers(min_value=1, max_value=4))):
        start = draw(st.integers(min_value=0, max_value=len(content)))
        length = draw(st.sampled_from([0, 0, 1, 2, 9, 60, 700]))
        piece = draw(st.one_of(st.sampled_from(PIECES), st.binary(max_size=4)))
        content = content[:start] + piece + content[start + length :]
    return content


def check(content: bytes, items: Sequence[Item]) -> None:
    """What holds of any file, whatever is in it."""
    lines = [item.line or 0 for item in items if not isinstance(item, BadFile)]
    assert lines == sorted(lines)
    assert all(line >= 1 for line in lines)
    assert all(not isinstance(item, BadFile) for item in items[:-1])
    ends = [item.line for item in items if isinstance(item, Record | BadRecord | Deletion)]
    assert len(ends) == len(set(ends)), "one record, deletion or bad record a place"
    for item in items:
        if isinstance(item, Record):
            passage = item.passage
            assert re.fullmatch(r"pmid:[1-9][0-9]*", passage.id)
            assert passage.text.strip()
            assert passage.text == "\n".join(plain(line) for line in passage.text.split("\n"))
            assert passage.title == plain(passage.title)
            assert item.row == item.line - 1
        elif isinstance(item, Notice):
            assert item.target.startswith("pmid:")
            assert item.by.startswith("pmid:")
    assert max(lines, default=0) <= places(content)


@examples(50)
@given(mutated())
def test_nothing_is_raised_whatever_the_file_holds(content: bytes) -> None:
    items = items_of(content)
    check(content, items)
    assert [shown(item) for item in items_of(content)] == [shown(item) for item in items]
    for after in {1, len(items) // 2, len(items)}:
        tail = [item for item in items if isinstance(item, BadFile) or item.line > after]
        assert [shown(item) for item in items_of(content, after=after)] == [
            shown(item) for item in tail
        ]


#: what may stand in an abstract, and looks like the end or the beginning of a record
LOOKALIKES = (
    "words",
    " &lt;/PubmedArticle&gt; ",
    "<!-- </PubmedArticle> -->",
    "<!-- <PubmedArticle> <![CDATA[ -->",
    "<![CDATA[</PubmedArticle><PubmedArticle>]]>",
    "<![CDATA[<!-- ]]>",
    "<?p </PubmedArticle> <!-- ?>",
    "<b>]] > --</b>",
)
BETWEEN = (
    "",
    "\n",
    "<!-- <PubmedArticle> -->",
    "<?p <PubmedArticle></PubmedArticleSet>?>",
    "<!-- > -->  <!-- </PubmedArticleSet> -->",
)


@st.composite
def well_formed(draw: st.DrawFn) -> tuple[bytes, list[str]]:
    """A file that is XML and looks as if it were not, and the numbers of its records."""
    numbers = draw(st.lists(NUMBERS, min_size=1, max_size=4, unique=True))
    parts = []
    for number in numbers:
        inside = "".join(draw(st.lists(st.sampled_from(LOOKALIKES), max_size=5)))
        record = article(number, abstract=f"So: {inside}.")
        if draw(st.booleans()):
            record = record.replace("<PubmedArticle>", "<PubmedArticle\n >", 1)
            record = record.removesuffix("</PubmedArticle>") + "</PubmedArticle\t>"
        parts += [draw(st.sampled_from(BETWEEN)), record]
    return document(*parts, draw(st.sampled_from(BETWEEN))), numbers


@examples(50)
@given(well_formed())
def test_what_a_parser_of_the_whole_file_reads_is_read_the_same(
    file: tuple[bytes, list[str]],
) -> None:
    """Cutting a file into records is no other way to read XML."""
    content, numbers = file
    root = etree.fromstring(content, etree.XMLParser(remove_comments=True, remove_pis=True))
    expected = [one.findtext("MedlineCitation/PMID") for one in root.iterfind("PubmedArticle")]
    texts = [plain("".join(map(str, section.itertext()))) for section in root.iter("AbstractText")]
    items = [item for item in items_of(content) if isinstance(item, Record)]
    assert [item.passage.pmid for item in items] == numbers == expected
    assert [item.passage.text for item in items] == texts
    assert places(content) == len(numbers)
