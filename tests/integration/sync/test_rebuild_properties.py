"""Whatever an index held, and wherever rebuilds were broken off: at last it is what one built anew would be."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from posology.index.build.ingest import ingest
from posology.index.build.rows import RowSource
from posology.index.store import Index
from posology.index.sync.rebuild import rebuild
from posology.index.sync.report import SyncProgress
from posology.index.sync.sync import sync
from posology.testing.models.embedder import HashEmbedder
from tests.support.examples import examples
from tests.support.pubmed_files import Citation, write
from tests.support.sync import Crash, content

PMIDS = st.integers(1, 6)
TARGETS = st.lists(PMIDS, max_size=1).map(tuple)
CITATIONS = st.builds(
    lambda pmid, text, retracts, concerns, own: Citation(
        pmid=pmid, text=text, retracts=retracts, concerns=concerns, retracted=own
    ),
    PMIDS,
    st.sampled_from(["Aspirin helps.", "It does not.", ""]),
    TARGETS,
    TARGETS,
    st.booleans(),
)
#: an update file: its records and deletions
FILES = st.tuples(st.lists(CITATIONS, max_size=4), st.lists(PMIDS, max_size=2))
#: passages of other names, some of them parts of an article that the folder holds as text, one of a record's id
ROWS = st.lists(
    st.tuples(
        st.sampled_from(
            ["n:1", "n:1#1", "pmid:2#1", "pmid:1", "file:pubmed/b.txt#2", "file:pubmed/b.txt#9"]
        ),
        # the last is too long for a passage, and is read as parts
        st.sampled_from(["A.", "B.", "Salt helped them. " * 1_200]),
        st.booleans(),
    ).map(lambda row: (row[0], row[1], row[0].rpartition("#")[0] or None if row[2] else None)),
    max_size=4,
)
#: paragraphs of that article, each of which becomes a part
ARTICLES = st.none() | st.integers(1, 3)
#: what a folder holds
FOLDERS = st.tuples(st.lists(FILES, max_size=3), ROWS, ARTICLES).filter(any)

Folder = tuple[
    Sequence[tuple[Sequence[Citation], Sequence[int]]],
    Sequence[tuple[str, str, str | None]],
    int | None,
]


def fill(folder: Path, found: Folder) -> None:
    """Have a folder hold this, and nothing else."""
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    files, rows, paragraphs = found
    for number, (records, deleted) in enumerate(files, start=1):
        write(folder, number, records, deleted)
    if rows:
        lines = (json.dumps({"id": i, "text": t, "parent": p}) + "\n" for i, t, p in rows)
        (folder / "a.jsonl").write_text("".join(lines))
    if paragraphs:
        said = ("Aspirin lowered the risk of stroke in adults who took it. " * 60).strip()
        (folder / "b.txt").write_text("\n\n".join([said] * paragraphs))


@pytest.mark.timeout(900)
@settings(examples(3), suppress_health_check=list(HealthCheck))
@given(
    before=FOLDERS,
    ingested=ROWS,
    others=st.lists(st.tuples(FOLDERS, st.integers(1, 9)), max_size=2),
    last=FOLDERS,
)
def test_a_rebuilt_index_is_one_that_is_built_anew(
    before: Folder, ingested: Sequence[tuple[str, str, str | None]],
    others: Sequence[tuple[Folder, int]], last: Folder,
) -> None:  # fmt: skip
    embedder = HashEmbedder(dim=8)
    with tempfile.TemporaryDirectory() as temporary:
        where = Path(temporary)
        folder = where / "pubmed"
        index = Index.create(where / "index", embedder.name, embedder.dim)
        fill(folder, before)
        sync(folder, index, RowSource(embedder=embedder, batch=2))
        if ingested:
            fill(where / "notes", ([], ingested, None))
            ingest([where / "notes"], index, RowSource(embedder=embedder))
        seen = content(index)
        for found, steps in others:
            fill(folder, found)
            left = [steps]

            def crash(_: SyncProgress, left: list[int] = left) -> None:
                left[0] -= 1
                if not left[0]:
                    raise Crash

            try:
                rebuild(
                    folder,
                    index,
                    RowSource(embedder=embedder, batch=2),
                    allow_gaps=True,
                    allow_removals=True,
                    progress=crash,
                )
            except Crash:
                event("broken off")
                index = Index.open(index.uri)
                assert content(index) == seen
            else:
                seen = content(index)
        fill(folder, last)
        report = rebuild(
            folder,
            index,
            RowSource(embedder=embedder, batch=2),
            allow_gaps=True,
            allow_removals=True,
        )
        anew = Index.create(where / "anew", embedder.name, embedder.dim)
        sync(folder, anew, RowSource(embedder=embedder))
        assert content(Index.open(index.uri)) == content(anew)
        assert report.rebuilt is not None
        assert report.rebuilt.passages == anew.count()
        # and no notice is left that would mark what comes later
        assert index.notices == anew.notices
        assert rebuild(folder, index, RowSource(embedder=embedder)).nothing
