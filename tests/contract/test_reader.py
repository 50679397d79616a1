"""What every reader of literature owes to those who call it, whatever a file holds."""

from __future__ import annotations

import gzip
import tempfile
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.corpus.files import KINDS, Kind, kind_of
from posology.corpus.folders import expand
from posology.corpus.items import Item, Notice, Parts, Record
from posology.corpus.record import MAX_ID
from posology.errors import BadFile, BadRecord
from tests.support.literature import SAMPLES

FILES = [(kind, name) for kind in KINDS for name in SAMPLES[kind.name]]
ROWS = [pytest.param(kind, name, id=f"{kind.name}-{name}") for kind, name in FILES]
#: each PDF is read by a process of its own, so that many take long
EXAMPLES = [
    pytest.param(kind, name, id=row.id, marks=pytest.mark.slow if kind.name == "pdf" else ())
    for (kind, name), row in zip(FILES, ROWS, strict=True)
]


def line_of(item: Item) -> int:
    """The place of an item; a file's end is behind all of it."""
    return 1 << 60 if isinstance(item, BadFile) else item.line


def shown(item: Item) -> object:
    """An item by its content: errors are equal only to themselves."""
    return (type(item), item.details) if isinstance(item, BadRecord | BadFile) else item


def check(kind: Kind, path: Path) -> list[Item]:
    """The items of a file, after whatever holds of any file was asserted."""
    items = list(kind.read(path))
    assert list(map(shown, kind.read(path))) == list(map(shown, items))
    places = [line_of(item) for item in items]
    assert places == sorted(places)
    assert all(place >= 1 for place in places)
    records = [item for item in items if isinstance(item, Record)]
    for one, other in pairwise(records):
        assert one.line < other.line
        assert one.row < other.row
    for record in records:
        passage = record.passage
        assert record.path == path
        assert passage.text.strip()
        assert 0 < len(passage.id) <= MAX_ID
        assert "\0" not in passage.text + passage.title
        assert passage.id == passage.id.strip()
        (passage.text + passage.title + passage.id).encode()
        assert passage.year is None or 1000 <= passage.year <= 9999
        assert passage.pmid is None or passage.pmid.isdigit()
    assert not any(isinstance(item, BadFile) for item in items[:-1])
    for item in items:
        assert not isinstance(item, BadRecord | BadFile) or item.path == str(path)
        if isinstance(item, Notice) and item.target == item.by:
            # of itself only what is no passage any more, and could not say so in one
            assert item.target not in {
                record.passage.id for record in records if record.line == item.line
            }
        if isinstance(item, Parts):
            kept = [r.passage.id for r in records if r.passage.parent == item.id]
            assert len(set(kept)) == item.count
            assert all(map(item.keep, kept))
    good = sum(isinstance(item, Record | BadRecord) for item in items)
    # of a damaged file it may count what the damage swallowed: it is for a progress bar
    assert good <= kind.count(path)
    for after in {1, len(items) // 2, len(items)}:
        tail = [shown(item) for item in items if line_of(item) > after]
        assert [shown(item) for item in kind.read(path, after=after)] == tail
    return items


def make(folder: Path | str, name: str, content: bytes) -> Path:
    path = Path(folder) / name
    path.write_bytes(content)
    return path


def test_every_kind_has_samples() -> None:
    assert set(SAMPLES) == {kind.name for kind in KINDS}


@pytest.mark.parametrize(("kind", "name"), ROWS)
def test_whole_files(kind: Kind, name: str, tmp_path: Path) -> None:
    path = make(tmp_path, name, SAMPLES[kind.name][name])
    assert kind_of(path) is kind
    assert list(expand([tmp_path])) == [path]
    items = check(kind, path)
    assert any(isinstance(item, Record) for item in items)
    assert not any(isinstance(item, BadFile) for item in items)
    assert kind.count(path) <= len(items)


@pytest.mark.parametrize(("kind", "name"), ROWS)
def test_an_empty_file_and_one_that_is_not_there(kind: Kind, name: str, tmp_path: Path) -> None:
    empty = check(kind, make(tmp_path, name, b""))
    assert not any(isinstance(item, Record) for item in empty)
    assert len(empty) == (kind.name != "jsonl")
    (gone,) = kind.read(tmp_path / f"gone-{name}")
    assert isinstance(gone, BadFile)
    assert "No such file" in gone.reason
    assert kind.count(tmp_path / f"gone-{name}") == 0


@pytest.mark.parametrize(("kind", "name"), [row for row in ROWS if "gz" in str(row.values[1])])
def test_a_truncated_gzip_keeps_what_came_before(kind: Kind, name: str, tmp_path: Path) -> None:
    content = SAMPLES[kind.name][name]
    whole = list(kind.read(make(tmp_path, name, content)))
    path = make(tmp_path, name, content[:-9])
    items = check(kind, path)
    assert isinstance(items[-1], BadFile)
    before = [shown(item) for item in items[:-1]]
    if kind.name == "text" and before:
        before.pop()  # the passage in which the text ends early is as long as there is text
    assert before == [shown(item) for item in whole][: len(before)]


@pytest.mark.parametrize(("kind", "name"), EXAMPLES)
@given(data=st.data())
def test_broken_bytes_raise_nothing(kind: Kind, name: str, data: st.DataObject) -> None:
    content = SAMPLES[kind.name][name]
    packed = content[:2] == b"\x1f\x8b"
    if packed and data.draw(st.booleans(), label="inside"):
        content = gzip.decompress(content)
    else:
        packed = False
    for _ in range(data.draw(st.integers(1, 4), label="changes")):
        start = data.draw(st.integers(0, len(content)), label="from")
        end = data.draw(st.integers(start, min(len(content), start + 40)), label="to")
        new = data.draw(st.binary(max_size=20), label="by")
        content = content[:start] + new + content[end:]
    with tempfile.TemporaryDirectory() as folder:
        path = make(folder, name, gzip.compress(content) if packed else content)
        check(kind, path)


@pytest.mark.parametrize(("kind", "name"), EXAMPLES)
@given(content=st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode)))
def test_any_bytes_raise_nothing(kind: Kind, name: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(kind, make(folder, name, content))


def _many(kind: str, size: int) -> Iterator[bytes]:
    text = b"Salt helped some of those who had been given it by a nurse. " * 9
    match kind:
        case "jsonl":
            for i in range(size):
                yield b'{"id": "n:%d", "text": "%s"}\n' % (i, text)
        case "text":
            for _ in range(size):
                yield text + b"\n\n"
        case "jats":
            yield b"<pmc-articleset>"
            for i in range(size):
                yield (
                    b'<article><front><article-meta><article-id pub-id-type="pmc">%d</article-id>'
                    b"</article-meta></front><body><p>%s</p></body></article>" % (i + 1, text)
                )
            yield b"</pmc-articleset>"


@pytest.mark.parametrize(
    ("name", "suffix"), [("jsonl", ".jsonl"), ("text", ".txt"), ("jats", ".nxml")]
)
def test_a_large_file_is_not_held(name: str, suffix: str, tmp_path: Path) -> None:
    kind = next(kind for kind in KINDS if kind.name == name)
    peaks = []
    for size in (150, 1_200):
        path = tmp_path / f"{size}{suffix}"
        with path.open("wb") as out:
            out.writelines(_many(name, size))
        next(kind.read(path))  # what is made once
        tracemalloc.start()
        count = sum(isinstance(item, Record) for item in kind.read(path))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert count >= size / 2
    # eight times the file: a list of its items would be eight times the memory
    assert peaks[1] < 2 * peaks[0] + 500_000


def test_parts_keep_their_own_numbers_only() -> None:
    parts = Parts(id="a#1", count=2, path=Path("a"), line=1)
    assert parts.keep("a#1#1")
    assert parts.keep("a#1#2")
    for other in ("a#1#3", "a#1#0", "a#1#01", "a#1#²", "a#1#", "a#1", "b#1#1", "a#11", ""):
        assert not parts.keep(other)
    assert not replace(parts, count=1).keep("a#1#2")
