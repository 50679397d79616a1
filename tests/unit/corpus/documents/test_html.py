from __future__ import annotations

from pathlib import Path

import pytest

from posology.corpus.documents import html
from posology.corpus.items import Item, Parts, Record
from posology.errors import BadFile
from tests.support.growth import MOST, growth
from tests.support.literature import HTML


def items(folder: Path, content: bytes | str) -> list[Item]:
    path = folder / "a_page.html"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(html.read(path))


def shown(folder: Path, content: bytes | str) -> list[tuple[str | None, str]]:
    return [
        (item.passage.section, item.passage.text)
        for item in items(folder, content)
        if isinstance(item, Record)
    ]


def test_a_page_of_a_publisher(tmp_path: Path) -> None:
    first, second, last = items(tmp_path, HTML)
    assert isinstance(first, Record)
    passage = first.passage
    assert (passage.title, passage.pmid, passage.doi) == ("Salt for some", "601", "10.1000/h1")
    assert (passage.published, passage.section) == ("2012-07-05", "Methods")
    assert passage.text == "Half were given 5 µg of salt at 10^9/L."
    assert isinstance(second, Record)
    assert second.passage.section == "Methods > Doses"
    assert second.passage.text == "One dose a day.\n\nTwo doses."
    assert isinstance(last, Parts)


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        ("<p>One<p>Two", ["One", "Two"]),
        ("One<br>Two", ["One", "Two"]),
        ("<div>One <b>and <i>a</i></b> half<div>Two</div>Three</div>", ["One and a half", "Two", "Three"]),
        ("<p>a<sub>1</sub>, 10<sup>-3</sup> and CO<sub>2</sub></p>", ["a1, 10^-3 and CO2"]),
        ("<p>x<sup>unclosed<p>y", ["xunclosed", "y"]),
        ("<nav>no</nav><form>no<p>no</form><script>no</script><p>yes", ["yes"]),
        ("<table><tr><td>0.05<td>12</table>", []),
        ("<table><tr><td>This cell has a sentence of more than ten words in it.</table>",
         ["This cell has a sentence of more than ten words in it."]),
        ("<p>&lt;5 &micro;g &amp; more</p>", ["<5 µg & more"]),
        ("<h2>References</h2><p>no<h2>Notes</h2><p>yes", ["yes"]),
    ],
)  # fmt: skip
def test_blocks(tmp_path: Path, body: str, texts: list[str]) -> None:
    found = shown(tmp_path, f"<meta charset=utf-8><body>{body}")
    assert [part for _, text in found for part in text.split("\n\n")] == texts


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ("<title>Salt | Journal</title>", "Salt | Journal"),
        ("<title>x</title></head><body><h1>Salt</h1>", "Salt"),
        ("<meta property='og:title' content='RETRACTED: Salt'>", "RETRACTED: Salt"),
        ("", "a page"),
    ],
)
def test_titles(tmp_path: Path, head: str, title: str) -> None:
    record = items(tmp_path, f"<html><head>{head}<p>Text.")[0]
    assert isinstance(record, Record)
    assert record.passage.title == title
    assert record.passage.retracted == title.startswith("RETRACTED")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<p>5 µg".encode(), "5 µg"),
        ('<meta charset="windows-1252"><p>5 µg'.encode("cp1252"), "5 µg"),
        ('<meta charset="iso-8859-1"><p>5 – 6'.encode("cp1252"), "5 – 6"),
        ("<p>5 µg".encode("utf-16"), "5 µg"),
        ("\ufeff<p>5 µg".encode(), "5 µg"),
        (b"<?xml version='1.0' encoding='utf-8'?><html><p>5</p></html>", "5"),
    ],
)
def test_encodings(tmp_path: Path, content: bytes, text: str) -> None:
    assert shown(tmp_path, content) == [(None, text)]


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("<p>5 µg".encode("cp1252"), "0xB5"),
        (b"<meta charset=klingon><p>x", "klingon"),
        (b"<meta charset=gzip><p>x", "gzip"),
        (b"", "no text"),
        (b"<html></html>", "no text"),
        (b"\0\0", "no text"),
    ],
)
def test_pages_that_are_not_read(tmp_path: Path, content: bytes, word: str) -> None:
    (bad,) = items(tmp_path, content)
    assert isinstance(bad, BadFile)
    assert word in bad.reason


def test_a_page_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "MAX_BYTES", 100)
    (bad,) = items(tmp_path, HTML)
    assert isinstance(bad, BadFile)
    assert "100 bytes" in bad.reason


@pytest.mark.parametrize("tag", ["div", "sup", "table", "li", "b"])
def test_deep_pages_take_time_in_proportion(tmp_path: Path, tag: str) -> None:
    def work(size: int) -> None:
        items(tmp_path, f"<{tag}>x" * size)

    assert growth(work, 3_000) < MOST
