"""Articles of several passages in an index: read once, read again, and warned of."""

from __future__ import annotations

from pathlib import Path

import pytest

from posology.errors import BadFile
from posology.index.build.ingest import ingest
from posology.index.build.rows import RowSource
from posology.index.store import Index
from posology.testing.models.embedder import HashEmbedder
from posology.text.quotes import Claimed, verify
from posology.types import Passage
from tests.support import pubmed_files
from tests.support.literature import SAMPLES, jats
from tests.support.pubmed_files import Citation


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder(dim=16)


@pytest.fixture
def index(tmp_path: Path, embedder: HashEmbedder) -> Index:
    return Index.create(tmp_path / "index", embedder.name, embedder.dim)


def passages(index: Index) -> list[Passage]:
    return [row.passage for row in index.fetch(sorted(index.ids()))]


def sections(*titles: str) -> str:
    said = (f"<sec><title>{t}</title><p>They were {t}.</p></sec>" for t in titles)
    return f"<body>{''.join(said)}</body>"


def write(path: Path, body: str, meta: str = "", **said: str) -> Path:
    path.write_text(jats(body, meta=meta, **said))  # type: ignore[arg-type]  # identifiers are its own
    return path


def test_an_article_that_is_read_again_loses_the_parts_that_are_gone(
    tmp_path: Path, index: Index, embedder: HashEmbedder
) -> None:
    path = write(tmp_path / "a.nxml", sections("asked", "counted", "told"))
    assert ingest([path], index, RowSource(embedder=embedder)).written == 3
    write(path, sections("asked", "weighed"))
    report = ingest([path], index, RowSource(embedder=embedder))
    assert (report.written, report.unchanged) == (1, 1)
    assert embedder.embedded == 4
    assert [(p.id, p.section) for p in passages(index)] == [
        ("pmcid:PMC70#1", "asked"),
        ("pmcid:PMC70#2", "weighed"),
    ]


def test_an_article_that_breaks_off_loses_nothing(
    tmp_path: Path, index: Index, embedder: HashEmbedder
) -> None:
    path = write(tmp_path / "a.nxml", sections("asked", "counted"))
    ingest([path], index, RowSource(embedder=embedder))
    path.write_text(path.read_text()[:-60])
    report = ingest([path], index, RowSource(embedder=embedder))
    assert [type(bad) for bad in report.bad_files] == [BadFile]
    assert len(passages(index)) == 2


@pytest.mark.parametrize("record_first", [True, False])
def test_a_retracted_record_of_pubmed_flags_its_full_text(
    tmp_path: Path, index: Index, embedder: HashEmbedder, record_first: bool
) -> None:
    text = write(tmp_path / "a.nxml", sections("asked", "counted"))
    updates = tmp_path / "updates"
    record = pubmed_files.write(updates, 1, [Citation(pmid=71, text="So.", retracted=True)])
    for path in (record, text) if record_first else (text, record):
        ingest([path], index, RowSource(embedder=embedder))
    assert {p.id: p.retracted for p in passages(index)} == dict.fromkeys(
        ("pmcid:PMC70#1", "pmcid:PMC70#2", "pmid:71"), True
    )
    # and its revision takes that back
    record = pubmed_files.write(updates, 2, [Citation(pmid=71, text="So.")])
    ingest([record], index, RowSource(embedder=embedder))
    assert not any(p.retracted for p in passages(index))


@pytest.mark.parametrize("notice_first", [True, False])
def test_a_notice_flags_all_parts_until_it_is_taken_back(
    tmp_path: Path, index: Index, embedder: HashEmbedder, notice_first: bool
) -> None:
    link = (
        '<related-article related-article-type="retracted-article" ext-link-type="pmid" '
        'xlink:href="71"/>'
    )
    trial = write(tmp_path / "trial.nxml", sections("asked", "counted"))
    other = tmp_path / "notice.nxml"
    other.write_text(jats(meta=link, kind="retraction", ids={"pmc": "90"}))
    for path in [other, trial] if notice_first else [trial, other]:
        ingest([path], index, RowSource(embedder=embedder))
    flags = {p.id: p.retracted for p in passages(index)}
    assert flags == {"pmcid:PMC70#1": True, "pmcid:PMC70#2": True, "pmcid:PMC90#1": False}
    other.write_text(jats(meta="", kind="letter", ids={"pmc": "90"}))
    ingest([other], index, RowSource(embedder=embedder))
    assert not any(p.retracted for p in passages(index))


def test_every_format_of_a_folder_is_read_and_its_quotes_verify(
    tmp_path: Path, index: Index, embedder: HashEmbedder
) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for kind, files in SAMPLES.items():
        name, content = next(iter(files.items()))
        (folder / f"{kind.replace(' ', '-')}-{name}").write_bytes(content)
    (folder / "README.txt").write_text("No literature.")
    report = ingest([folder], index, RowSource(embedder=embedder))
    assert report.files == len(SAMPLES)
    assert not report.bad_files
    found = passages(index)
    assert {p.source for p in found} >= {"pmc", "text", "pdf"}
    assert not any("No literature" in p.text for p in found)
    (leaflet,) = (p for p in found if p.source == "pdf")
    told = verify(
        [Claimed(passage_id=leaflet.id, quote="helped in this trial")],
        {p.id: p.text for p in found},
    )
    assert not told.dropped
    assert [one.passage_id for one in told.citations] == [leaflet.id]
    # as it was stored
    assert (leaflet.page, leaflet.last_page) == (1, 2)
