from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest

from posology.corpus.mesh import Heading, read_terms
from posology.errors import BadFile

HEAD = (
    '<?xml version="1.0"?>\n'
    '<!DOCTYPE DescriptorRecordSet SYSTEM "https://www.nlm.nih.gov/none/nlmdescriptorrecordset_20260101.dtd">\n'
    '<DescriptorRecordSet LanguageCode="eng">\n'
)
TAIL = "</DescriptorRecordSet>\n"


def term(text: str, *, permuted: str = "N") -> str:
    return (
        f'<Term ConceptPreferredTermYN="N" IsPermutedTermYN="{permuted}" LexicalTag="NON" '
        f'RecordPreferredTermYN="N"><TermUI>T1</TermUI><String>{text}</String></Term>'
    )


def concept(*terms: str, preferred: str = "Y") -> str:
    return (
        f'<Concept PreferredConceptYN="{preferred}"><ConceptUI>M1</ConceptUI><ConceptName>'
        f"<String>Never read</String></ConceptName><TermList>{''.join(terms)}</TermList></Concept>"
    )


def record(name: str, *concepts: str) -> str:
    return (
        '<DescriptorRecord DescriptorClass="1"><DescriptorUI>D1</DescriptorUI><DescriptorName>'
        f"<String>{name}</String></DescriptorName><TreeNumberList><TreeNumber>C14</TreeNumber>"
        f"</TreeNumberList><ConceptList>{''.join(concepts)}</ConceptList></DescriptorRecord>\n"
    )


INFARCTION = record(
    "Myocardial Infarction",
    concept(
        term("Myocardial Infarction"),
        term("Infarction, Myocardial", permuted="Y"),
        term("Heart Attack"),
        term("Heart  Attack"),
        term("Heart Attacks &amp; more"),
    ),
    concept(term("Myocardial Infarct"), term("Heart Attack"), preferred="N"),
)


@pytest.mark.parametrize("name", ["desc2026.xml", "desc2026.gz"])
def test_headings_and_their_terms(tmp_path: Path, name: str) -> None:
    content = (HEAD + INFARCTION + record("Humans") + record(" ") + TAIL).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    first, second = read_terms(path)
    assert first == Heading(
        name="Myocardial Infarction",
        synonyms=("Heart Attack", "Heart Attacks & more"),
        related=("Myocardial Infarct",),
    )
    assert first.terms == ("Heart Attack", "Heart Attacks & more", "Myocardial Infarct")
    assert second == Heading(name="Humans", synonyms=(), related=())


def test_a_file_that_ends_early_gives_what_came_before(tmp_path: Path) -> None:
    path = tmp_path / "desc.xml"
    path.write_text(HEAD + INFARCTION * 3 + "<DescriptorRecord>")
    headings = read_terms(path)
    found = [next(headings).name for _ in range(3)]
    assert found == ["Myocardial Infarction"] * 3
    with pytest.raises(BadFile) as raised:
        next(headings)
    assert raised.value.line == 3


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<html/>", "desc2026.xml"),
        (b"", "well-formed"),
        (gzip.compress(HEAD.encode())[:-9], "Compressed file ended"),
    ],
)
def test_what_is_no_file_of_descriptors(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "desc.xml"
    path.write_bytes(content)
    with pytest.raises(BadFile) as raised:
        list(read_terms(path))
    assert reason in raised.value.reason


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "desc.xml"

    def peak(records: int) -> int:
        path.write_text(HEAD + record("Some", concept(term("word " * 200))) * records + TAIL)
        tracemalloc.start()
        assert sum(1 for _ in read_terms(path)) == records
        reached = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return reached

    assert peak(1_000) < peak(200) + 100_000
