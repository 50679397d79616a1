"""Authors of every format in one form."""

from __future__ import annotations

from pathlib import Path

import pytest

from posology.corpus.files import read
from posology.corpus.items import Record
from tests.support.literature import endnote, endnote_record, jats
from tests.support.pubmed_xml import article, document

TWO = ("Müller, Ann B.", "Salt Study Group")
PUBMED = article(
    "1",
    locations='<AuthorList CompleteYN="Y"><Author ValidYN="Y"><LastName>Müller</LastName><ForeName>Ann B.</ForeName>'
    '<Initials>AB</Initials></Author><Author ValidYN="N"><LastName>Wrong</LastName></Author>'
    '<Author ValidYN="Y"><CollectiveName>Salt Study Group</CollectiveName></Author></AuthorList>',
)
NBIB = """PMID- 1
AB  - Salt helped.
FAU - Müller, Ann B.
AU  - Müller AB
CN  - Salt Study Group
SO  - N.
"""
RIS = """TY  - JOUR
AU  - Müller, Ann B.
A1  - Salt Study Group,
A2  - Editor, E.
AB  - Salt helped.
ER  -
"""
BIB = r"""@article{a, author = {M{\"u}ller, Ann B. and {Salt Study Group}}, abstract = {Salt helped.}}
"""
JATS = jats(
    meta='<contrib-group><contrib contrib-type="author"><name><surname>Müller</surname><given-names>Ann B.</given-names>'
    '</name></contrib><contrib contrib-type="author"><collab>Salt Study Group<contrib-group><contrib><name><surname>Roe'
    "</surname></name></contrib></contrib-group></collab></contrib>"
    '<contrib contrib-type="editor"><name><surname>Editor</surname></name></contrib></contrib-group>'
    "<abstract><p>Salt helped.</p></abstract>"
)
HTML = (
    '<meta charset="utf-8"><meta name="citation_author" content="Ann B. Müller">'
    '<meta name="citation_author" content="Salt Study Group"><p>Salt helped.'
)
ENDNOTE = endnote(
    endnote_record(
        more="<contributors><authors><author><style>Müller, Ann B.</style></author>"
        "<author>Salt Study Group,</author></authors></contributors>"
    )
)
FILES: dict[str, str | bytes] = {
    "a.xml": document(PUBMED),
    "a.nbib": NBIB,
    "a.ris": RIS,
    "a.bib": BIB,
    "a.nxml": JATS,
    "a.html": HTML,
    "endnote.xml": ENDNOTE,
    "a.csv": 'abstract,Authors\nSalt helped.,"Müller, Ann B.; Salt Study Group"\n',
    "natural.tsv": "abstract\tauthor\nSalt helped.\tAnn B. Müller; Salt Study Group\n",
    "a.jsonl": '{"id": "a", "text": "Salt.", "authors": ["Müller, Ann B.", "Salt Study Group"]}\n',
    "parts.jsonl": '{"id": "a", "text": "Salt.", "authors": [{"family": "Müller", "given": "Ann B."}, '
    '{"name": "Salt Study Group"}, 7]}\n',
    "text.jsonl": '{"id": "a", "text": "Salt.", "authors": "Ann B. Müller; Salt Study Group"}\n',
}


def authors(path: Path, content: str | bytes) -> tuple[str, ...]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    found = [item.passage.authors for item in read(path) if isinstance(item, Record)]
    assert found
    assert len(set(found)) == 1, "the parts of an article have its authors"
    return found[0]


@pytest.mark.parametrize("name", FILES)
def test_authors_of_every_format_have_one_form(tmp_path: Path, name: str) -> None:
    assert authors(tmp_path / name, FILES[name]) == TWO


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.nbib", "PMID- 1\nAB  - Salt.\nAU  - Smith JA\nAU  - et al.\nSO  - N.\n", ("Smith, JA", "et al.")),
        ("a.bib", r"@article{a, author={Ludwig van der Berg and de la Cruz, Jr., Ana and others}, abstract={S.}}",
         ("van der Berg, Ludwig", "de la Cruz, Ana Jr.", "et al.")),
        # a name is no reason to lose the abstract
        ("a.bib", r"@article{a, author={\foo{Smith}, J}, abstract={Salt.}}", (r"\fooSmith, J",)),
        ("a.jsonl", '{"id": "a", "text": "Salt.", "authors": null}', ()),
        ("a.jsonl", '{"id": "a", "text": "Salt.", "authors": 7}', ()),
        ("a.csv", "abstract\nSalt.\n", ()),
    ],
)  # fmt: skip
def test_authors_as_they_also_come(
    tmp_path: Path, name: str, content: str, expected: tuple[str, ...]
) -> None:
    assert authors(tmp_path / name, content) == expected
