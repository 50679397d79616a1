"""Files of PubMed's XML, checked against the DTD and read."""

from __future__ import annotations

import gzip
import importlib.util
from functools import cache
from pathlib import Path

from lxml import etree

from posology.corpus.items import Deletion, Item, Notice, Record
from posology.corpus.pubmed.reader import read
from posology.errors import BadFile, BadRecord
from posology.types import Passage
from tests.support.pubmed_xml import document


@cache
def _dtd() -> etree.DTD:
    # Biopython ships NLM's DTDs
    found = importlib.util.find_spec("Bio")
    assert found is not None
    assert found.origin is not None
    return etree.DTD(str(Path(found.origin).parent / "Entrez" / "DTDs" / "pubmed_250101.dtd"))


def assert_valid(content: bytes) -> None:
    """That a file is what NLM's DTD of 2025 allows."""
    dtd = _dtd()
    if not dtd.validate(etree.fromstring(content)):
        raise AssertionError(str(dtd.error_log))


def write(path: Path, content: bytes) -> Path:
    """Write a file, gzipped if its name says so."""
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def items_of(tmp_path: Path, content: bytes, *, valid: bool = True) -> list[Item]:
    """What is read of a file."""
    if valid:
        assert_valid(content)
    return list(read(write(tmp_path / "set.xml", content)))


def passage_of(tmp_path: Path, record: str, *, valid: bool = True) -> Passage:
    """The passage of a file of one record, whatever it warns of."""
    *notices, item = items_of(tmp_path, document(record), valid=valid)
    assert all(isinstance(notice, Notice) for notice in notices), notices
    assert isinstance(item, Record), item
    return item.passage


def shown(item: Item) -> str:
    """An item, in short."""
    match item:
        case Record():
            return f"{item.line} {item.passage.id}"
        case Deletion():
            return f"{item.line} -{item.id}"
        case Notice():
            return f"{item.line} {item.kind} {item.target} by {item.by}"
        case BadRecord() | BadFile():
            return f"{item.line} bad: {item.reason}"
    raise AssertionError(f"no reader of PubMed's files yields {item}")
