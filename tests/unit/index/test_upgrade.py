"""Roles of sentences: written by every ingest, and added in place to an index of an earlier version."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from posology.index.build.ingest import ingest
from posology.index.build.rows import RowSource
from posology.index.build.upgrade import Upgraded, upgrade
from posology.index.schema import TABLE
from posology.index.search.retriever import Retriever
from posology.index.store import Index
from posology.query import make_query
from posology.testing.models.embedder import HashEmbedder
from posology.types import SentenceRole
from tests.support.minilm import NamedLikeMiniLM

pytestmark = pytest.mark.anyio

COUNT = 30
QUERY = make_query("Does aspirin prevent stroke?")

UPGRADING = """
import sys
from posology.index.store import Index
from posology.index.build.upgrade import upgrade

def step(written):
    print(written, flush=True)
    sys.stdin.readline()

upgrade(Index.open(sys.argv[1]), batch=8, step=step)
"""


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    rows = (
        {
            "id": f"a:{i}",
            "text": f"BACKGROUND: Strokes are frequent. METHODS: Aspirin was given to {i}. RESULTS: Stroke was rare.",
        }
        for i in range(COUNT)
    )
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [path]


@pytest.fixture
def minilm() -> NamedLikeMiniLM:
    return NamedLikeMiniLM()


@pytest.fixture
def written(tmp_path: Path, minilm: NamedLikeMiniLM, files: list[Path]) -> Index:
    index = Index.create(tmp_path / "written", minilm.name, minilm.dim)
    ingest(files, index, RowSource(embedder=minilm))
    return index


@pytest.fixture
def old(written: Index, tmp_path: Path) -> Index:
    """Return a copy of the index as earlier versions made it."""
    shutil.copytree(written.uri, tmp_path / "old")
    index = Index.open(tmp_path / "old")
    index.connection.open_table(TABLE).drop_columns(["roles"])
    index.publish()
    return Index.open(tmp_path / "old")


def roles(index: Index) -> list[tuple[SentenceRole, ...] | None]:
    return [one.roles for one in index.fetch(sorted(index.ids()))]


def test_an_ingest_writes_a_role_for_each_sentence(written: Index) -> None:
    for one in written.fetch(written.ids()):
        assert one.roles is not None
        assert one.roles[1:] == (SentenceRole.METHODS, SentenceRole.RESULTS)
        assert one.roles[0] in {SentenceRole.BACKGROUND, SentenceRole.AIM}
    assert written.info().without_roles == 0


async def test_roles_reach_questions(written: Index, minilm: NamedLikeMiniLM) -> None:
    found = await Retriever(written, minilm).retrieve(QUERY, 3)
    assert all(one.roles and one.excerpt().roles == one.roles for one in found.passages)


def test_an_index_of_another_embedder_has_no_roles(tmp_path: Path, files: list[Path]) -> None:
    embedder = HashEmbedder(dim=16)
    index = Index.create(tmp_path / "other", embedder.name, embedder.dim)
    ingest(files, index, RowSource(embedder=embedder))
    assert roles(index) == [None] * COUNT
    assert index.info().without_roles == 0
    assert upgrade(index) == Upgraded(written=0, lacking=COUNT)


async def test_an_old_index_answers_without_roles(old: Index, minilm: NamedLikeMiniLM) -> None:
    found = await Retriever(old, minilm).retrieve(QUERY, 3)
    assert [one.roles for one in found.passages] == [None] * 3
    assert old.info().without_roles == COUNT


def test_an_upgrade_gives_the_roles_of_an_ingest(written: Index, old: Index) -> None:
    expected = roles(written)
    before = old.fetch(["a:7"])[0]
    assert upgrade(old, batch=8) == Upgraded(written=COUNT, lacking=0)
    found = Index.open(old.place)
    assert roles(found) == expected
    after = found.fetch(["a:7"])[0]
    assert (after.passage, after.sentences) == (before.passage, before.sentences)
    assert (after.sentence_vectors == before.sentence_vectors).all()
    assert found.bm25("aspirin", 5).ids == old.bm25("aspirin", 5).ids
    assert upgrade(found) == Upgraded(written=0, lacking=0)


def test_old_rows_stay_without_roles_when_others_are_written(
    old: Index, minilm: NamedLikeMiniLM, tmp_path: Path
) -> None:
    more = tmp_path / "more.jsonl"
    more.write_text(json.dumps({"id": "b:1", "text": "METHODS: Aspirin was given."}) + "\n")
    ingest([more], old, RowSource(embedder=minilm))
    assert old.fetch(["b:1"])[0].roles == (SentenceRole.METHODS,)
    assert old.fetch(["a:1"])[0].roles is None
    assert upgrade(old) == Upgraded(written=COUNT, lacking=0)


def test_a_quick_ingest_leaves_roles_to_its_completion(
    tmp_path: Path, minilm: NamedLikeMiniLM, files: list[Path]
) -> None:
    index = Index.create(tmp_path / "quick", minilm.name, minilm.dim)
    ingest(files, index, RowSource(embedder=minilm), quick=True)
    assert upgrade(index) == Upgraded(written=0, lacking=0)
    assert roles(index) == [None] * COUNT
    ingest(files, index, RowSource(embedder=minilm))
    assert None not in roles(index)


async def test_passages_that_a_question_completes_have_roles(
    tmp_path: Path, minilm: NamedLikeMiniLM, files: list[Path]
) -> None:
    index = Index.create(tmp_path / "quick", minilm.name, minilm.dim)
    ingest(files, index, RowSource(embedder=minilm), quick=True)
    found = await Retriever(index, minilm).retrieve(QUERY, 3)
    assert all(one.roles for one in found.passages)


def begin(index: Index) -> subprocess.Popen[str]:
    """Start an upgrade that waits for a line after each commit."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", UPGRADING, index.uri], stdin=pipe, stdout=pipe, text=True
    )


async def test_a_killed_upgrade_resumes_and_readers_answer_meanwhile(
    old: Index, minilm: NamedLikeMiniLM
) -> None:
    reader = Retriever(Index.open(old.place), minilm)
    before = await reader.retrieve(QUERY, 3)
    process = begin(old)
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        assert int(process.stdout.readline()) == 8
        process.stdin.write("\n")
        process.stdin.flush()
        assert int(process.stdout.readline()) == 8
        during = await Retriever(Index.open(old.place), minilm).retrieve(QUERY, 3)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    for found in (during, await reader.retrieve(QUERY, 3)):
        assert found.index_version == before.index_version
        assert [one.passage for one in found.passages] == [one.passage for one in before.passages]
    resumed = Index.open(old.place)
    steps: list[int] = []
    assert upgrade(resumed, batch=8, step=steps.append) == Upgraded(written=COUNT - 16, lacking=0)
    assert sum(steps) == COUNT - 16
    assert None not in roles(Index.open(old.place))


def test_a_run_that_was_killed_before_it_published_is_published_by_the_next(old: Index) -> None:
    class Killed(Exception):
        pass

    def step(_: int) -> None:
        raise Killed

    with pytest.raises(Killed):
        upgrade(old, step=step)
    assert Index.open(old.place).fetch(["a:1"])[0].roles is None
    assert upgrade(Index.open(old.place)) == Upgraded(written=0, lacking=0)
    assert Index.open(old.place).fetch(["a:1"])[0].roles is not None
