"""Files of any items in any order, broken off anywhere: what the index holds, and what readers see of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from posology.corpus.items import Deletion, Notice, NoticeKind, Parts, Record, part_id
from posology.errors import VersionGone
from posology.index.build.batches import Batch
from posology.index.build.report import Tally
from posology.index.build.rows import LocalRowBuilder
from posology.index.maintenance import EXACT_FROM
from posology.index.reader import FRESH
from posology.index.store import Index
from posology.index.sync.changes import apply
from posology.index.view import View
from posology.testing.models.embedder import HashEmbedder
from posology.types import Passage

Thing = Record | Deletion | Notice | Parts
#: text, retracted, of concern; by the passage's id
Shown: TypeAlias = dict[str, tuple[str, bool, bool]]
Place: TypeAlias = tuple[int, int]
HERE = Path("a.jsonl")
EMBEDDER = HashEmbedder(dim=8)
MAKER = LocalRowBuilder(embedder=EMBEDDER, annotator=None, codec=None)
IDS = ("pmid:1", "pmid:2", "doi:10.1/A")
ARTICLES = ("pmcid:PMC1", "pmid:2")
TARGETS = (*IDS, *ARTICLES, "doi:10.1/a", "pmcid:pmc1", "pmcid:PMC1#1", "pmid:3")
TEXTS = ("Aspirin helps.", "Aspirin does not.", "Perhaps.")


class Model:
    """What ought to be: the same, one item after the other."""

    def __init__(self) -> None:
        self.passages: dict[str, Passage] = {}
        self.said: dict[str, tuple[Place, set[tuple[str, NoticeKind]]]] = {}

    def do(self, item: Thing, place: Place) -> None:
        match item:
            case Record(passage=passage):
                self.passages[passage.id] = passage
                if passage.source == "pubmed" or not passage.id.startswith(
                    ("pmid:", "doi:", "pmcid:")
                ):
                    self._speaks(passage.id, place)
            case Deletion():
                self.remove(lambda p: item.id in (p.id, p.parent))
                self._speaks(item.id, place)
                # an article speaks by its first part
                self._speaks(part_id(item.id, 1), place)
            case Parts():
                self.remove(lambda p: p.parent == item.id and not item.keep(p.id))
                if item.whole:
                    self.remove(lambda p: p.id == item.id)
                    self._speaks(item.id, place)
            case Notice():
                self._speaks(item.by, place).add((item.target.lower(), item.kind))

    def remove(self, which: Callable[[Passage], bool]) -> None:
        self.passages = {n: p for n, p in self.passages.items() if not which(p)}

    def shown(self) -> Shown:
        told = [one for _, said in self.said.values() for one in said]

        def warned(passage: Passage, kind: NoticeKind) -> bool:
            known = (f"pmid:{passage.pmid}", f"doi:{passage.doi}", f"pmcid:{passage.pmcid}")
            targets = {name.lower() for name in (passage.id, passage.parent or "", *known)}
            return any(target in targets and found is kind for target, found in told)

        return {
            name: (
                p.text,
                p.retracted or warned(p, NoticeKind.RETRACTION),
                p.concern or warned(p, NoticeKind.CONCERN),
            )
            for name, p in self.passages.items()
        }

    def _speaks(self, by: str, place: Place) -> set[tuple[str, NoticeKind]]:
        if by not in self.said or self.said[by][0] != place:
            self.said[by] = (place, set())
        return self.said[by][1]


def or_none(*values: str) -> st.SearchStrategy[str | None]:
    return st.sampled_from([None, *values])


kinds = st.sampled_from(list(NoticeKind))
names = st.sampled_from(IDS) | st.builds(part_id, st.sampled_from(ARTICLES), st.integers(1, 3))
#: an article's parts, whole articles, and what a line of JSON may say besides: parts of any name, which change their article
passages = st.builds(
    lambda name, stray, parent, **fields: Passage(
        id=name, parent=parent if stray else name.partition("#")[0] if "#" in name else None, **fields
    ),
    names, st.sampled_from([False, False, False, True]), or_none(*ARTICLES),
    text=st.sampled_from(TEXTS), retracted=st.booleans(), concern=st.booleans(),
    pmid=or_none("1", "3"), doi=or_none("10.1/a"), pmcid=or_none("PMC1"), source=or_none("pubmed"),
)  # fmt: skip
things = st.one_of(
    st.tuples(st.just("record"), passages),
    st.tuples(st.just("delete"), st.sampled_from(IDS + ARTICLES)),
    st.tuples(st.just("parts"), st.sampled_from(ARTICLES), st.integers(1, 3), st.booleans()),
    st.tuples(st.just("says"), passages, st.lists(st.tuples(st.sampled_from(TARGETS), kinds), max_size=2)),
)  # fmt: skip
batches = st.lists(things, min_size=1, max_size=6)


def items(found: Sequence[tuple[object, ...]]) -> Iterator[Thing]:
    for line, thing in enumerate(found, start=1):
        match thing:
            case ("record", Passage() as passage):
                yield Record(passage=passage, path=HERE, line=line, row=line - 1)
            case ("delete", str(name)):
                yield Deletion(id=name, path=HERE, line=line)
            case ("parts", str(name), int(count), bool(whole)):
                yield Parts(id=name, count=count, path=HERE, line=line, whole=whole)
            case ("says", Passage() as passage, list(said)):
                for target, kind in said:
                    yield Notice(target=target, kind=kind, by=passage.id, path=HERE, line=line)
                yield Record(passage=passage, path=HERE, line=line, row=line - 1)


@contextmanager
def unpublished(index: Index) -> Iterator[None]:
    """What is written within does not come to light, as when the writer dies."""

    class Crash(Exception):
        pass

    with suppress(Crash), index.staged():
        yield
        raise Crash


def seen(view: View) -> Shown:
    """What a version holds; whatever finds its passages finds these."""
    rows = view.fetch(view.ids())
    shown = {r.passage.id: (r.passage.text, r.passage.retracted, r.passage.concern) for r in rows}
    assert len(rows) == len(shown)
    assert view.retracted == sum(retracted for _, retracted, _ in shown.values())
    for all_of_them in (False, True):
        may = {name for name, (_, retracted, _) in shown.items() if all_of_them or not retracted}
        dense = view.dense(EMBEDDER.encode_query("aspirin").vector, 20, retracted=all_of_them)
        assert sorted(dense.ids) == sorted(may)
        words = view.bm25("aspirin", 20, retracted=all_of_them)
        assert sorted(words.ids) == sorted(name for name in may if "Aspirin" in shown[name][0])
    return shown


class Literature(RuleBasedStateMachine):
    """Two hold an index and write batches in turn, staged and not, some of them twice, as after a crash."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        place = Path(self.folder.name) / "index"
        self.index = Index.create(place, EMBEDDER.name, EMBEDDER.dim)
        self.other, self.reader = Index.open(place), Index.open(place)
        self.model = Model()
        self.lines = 0
        #: what readers of a version see, by its number
        self.versions: dict[int, Shown] = {self.reader.view().number: {}}
        self.gone: set[int] = set()

    def teardown(self) -> None:
        self.folder.cleanup()

    def write(self, found: Sequence[tuple[object, ...]]) -> None:
        self.lines += 1
        batch = Batch(items=tuple(items(found)))
        for item in batch.items:
            self.model.do(item, (self.lines, item.line))
        apply(batch, self.index, MAKER, None, Tally())

    def published(self) -> None:
        """Readers see what was written, from now on."""
        self.versions[Index.open(self.index.uri).view().number] = self.model.shown()

    @rule(found=st.lists(batches, min_size=1, max_size=3))
    def whole(self, found: list[list[tuple[object, ...]]]) -> None:
        """A file of several batches that ends."""
        with self.index.staged():
            for batch in found:
                self.write(batch)
        self.published()

    @rule(found=batches, begun=st.integers(0, 6))
    def broken_off(self, found: list[tuple[object, ...]], begun: int) -> None:
        """A batch of which some is written and not published, and all of it by whoever comes next."""
        with unpublished(self.index):
            first = Batch(items=tuple(items(found[:begun])))
            apply(first, self.index, MAKER, None, Tally())
        self.index = Index.open(self.index.uri)
        with unpublished(self.index):
            self.write(found)

    @rule(rows=st.lists(passages, min_size=1, max_size=4))
    def upsert(self, rows: list[Passage]) -> None:
        """Rows of any ids, also of equal ones, written at once."""
        records = [Record(passage=p, path=HERE, line=1, row=0) for p in rows]
        self.index.upsert([*MAKER.rows([(record, "") for record in records], None)])
        self.model.passages |= {p.id: p for p in rows}
        self.published()

    @rule(ids=st.sets(names | st.sampled_from(ARTICLES)), but=st.sets(names, max_size=2))
    def delete(self, ids: set[str], but: set[str]) -> None:
        self.index.delete(ids, but=but)
        self.model.remove(lambda p: p.id not in but and not ids.isdisjoint({p.id, p.parent}))
        self.published()

    @rule(indexed=st.booleans())
    def finish(self, *, indexed: bool) -> None:
        """What was written comes to light, and is indexed; of so few rows, else only id and words are."""
        self.index.finish(exact_from=1 if indexed else EXACT_FROM)
        self.published()

    @rule()
    def compact(self) -> None:
        self.index.compact()
        self.published()

    @rule()
    def take_turns(self) -> None:
        self.index, self.other = self.other, self.index

    @precondition(lambda self: len(self.versions) > 1)
    @rule()
    def expire(self) -> None:
        """The time of the oldest version is over, and whatever is not wanted any more goes."""
        # readers have looked for a newer one long since
        self.reader._looked = -FRESH
        oldest = self.reader.versions()[0]
        table = self.reader._open()
        table.branches.delete(oldest.branch)
        table.optimize(cleanup_older_than=timedelta(milliseconds=1))
        del self.versions[oldest.number]
        self.gone.add(oldest.number)

    @rule(which=st.integers(0, 50))
    def look_back(self, which: int) -> None:
        number = sorted(self.versions)[which % len(self.versions)]
        assert seen(self.reader.view_at(number)) == self.versions[number]
        for lost in self.gone:
            with pytest.raises(VersionGone):
                self.reader.view_at(lost)

    @invariant()
    def readers_see_what_was_published(self) -> None:
        reader = Index.open(self.index.uri)
        assert [version.number for version in reader.versions()] == sorted(self.versions)
        assert seen(reader.view()) == self.versions[max(self.versions)]


TestLiterature = Literature.TestCase
TestLiterature.settings = settings(
    max_examples=12,
    stateful_step_count=8,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
