"""Files of any items in any order, broken off anywhere: what the index holds, and what readers see of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from posology.corpus.items import Deletion, Notice, NoticeKind, Parts, Record, part_id
from posology.index.applying import apply
from posology.index.batches import Batch
from posology.index.making import RowMaker
from posology.index.report import Tally
from posology.index.store import Index
from posology.testing.embedder import HashEmbedder
from posology.types import Passage

Thing = Record | Deletion | Notice | Parts
HERE = Path("a.jsonl")
IDS = ("pmid:1", "pmid:2", "pmid:3")
ARTICLES = ("pmcid:PMC1", "pmcid:PMC2")


class Model:
    """What ought to be: the same, one item after the other."""

    def __init__(self) -> None:
        self.passages: dict[str, Passage] = {}
        self.said: dict[str, tuple[object, set[tuple[str, NoticeKind]]]] = {}

    def copy(self) -> Model:
        other = Model()
        other.passages = dict(self.passages)
        other.said = {by: (place, set(said)) for by, (place, said) in self.said.items()}
        return other

    def do(self, item: Thing, place: object) -> None:
        match item:
            case Record(passage=passage):
                self.passages[passage.id] = passage
                self._speaks(passage.id, place)
            case Deletion():
                self._remove(lambda p: item.id in (p.id, p.parent))
                self._speaks(item.id, place)
            case Parts():
                self._remove(lambda p: p.parent == item.id and not item.keep(p.id))
            case Notice():
                self._speaks(item.by, place).add((item.target, item.kind))

    def shown(self) -> dict[str, tuple[str, bool, bool]]:
        told = [one for _, said in self.said.values() for one in said]

        def warned(passage: Passage, kind: NoticeKind) -> bool:
            targets = {passage.id, passage.parent, f"pmid:{passage.pmid}"}
            return any(target in targets and found is kind for target, found in told)

        return {
            name: (
                p.text,
                p.retracted or warned(p, NoticeKind.RETRACTION),
                p.concern or warned(p, NoticeKind.CONCERN),
            )
            for name, p in self.passages.items()
        }

    def _speaks(self, by: str, place: object) -> set[tuple[str, NoticeKind]]:
        if by not in self.said or self.said[by][0] != place:
            self.said[by] = (place, set())
        return self.said[by][1]

    def _remove(self, which: Callable[[Passage], bool]) -> None:
        self.passages = {n: p for n, p in self.passages.items() if not which(p)}


flags = st.booleans()
texts = st.sampled_from(["Aspirin helps.", "It does not.", "Perhaps."])
kinds = st.sampled_from(list(NoticeKind))
numbers = st.one_of(st.none(), st.sampled_from(["1", "2"]))
records = st.builds(
    lambda i, t, r, c: Passage(id=i, text=t, retracted=r, concern=c),
    st.sampled_from(IDS), texts, flags, flags,
)  # fmt: skip
parts = st.builds(
    lambda a, n, t, p: Passage(id=part_id(a, n), text=t, parent=a, pmid=p),
    st.sampled_from(ARTICLES), st.integers(1, 3), texts, numbers,
)  # fmt: skip
things = st.one_of(
    st.tuples(st.just("record"), records),
    st.tuples(st.just("record"), parts),
    st.tuples(st.just("delete"), st.sampled_from(IDS + ARTICLES)),
    st.tuples(st.just("parts"), st.sampled_from(ARTICLES), st.integers(1, 3)),
    st.tuples(st.just("says"), records, st.lists(st.tuples(st.sampled_from(IDS + ARTICLES), kinds), max_size=2)),
)  # fmt: skip


def items(found: list[tuple[object, ...]]) -> Iterator[Thing]:
    for line, thing in enumerate(found, start=1):
        match thing:
            case ("record", Passage() as passage):
                yield Record(passage=passage, path=HERE, line=line, row=line - 1)
            case ("delete", str(name)):
                yield Deletion(id=name, path=HERE, line=line)
            case ("parts", str(name), int(count)):
                yield Parts(id=name, count=count, path=HERE, line=line)
            case ("says", Passage() as passage, list(said)):
                for target, kind in said:
                    yield Notice(target=target, kind=kind, by=passage.id, path=HERE, line=line)
                yield Record(passage=passage, path=HERE, line=line, row=line - 1)


class Literature(RuleBasedStateMachine):
    """Writes batches, staged and not, some of them twice, as after a crash."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.embedder = HashEmbedder(dim=8)
        self.index = Index.create(Path(self.folder.name) / "index", self.embedder.name, 8)
        self.maker = RowMaker(embedder=self.embedder, annotator=None, codec=None)
        self.model, self.published = Model(), Model()
        self.batch = 0

    def teardown(self) -> None:
        self.folder.cleanup()

    def write(self, found: list[tuple[object, ...]]) -> None:
        self.batch += 1
        batch = Batch(items=tuple(items(found)))
        for item in batch.items:
            self.model.do(item, (self.batch, item.line))
        apply(batch, self.index, self.maker, None, Tally())

    @rule(found=st.lists(st.lists(things, min_size=1, max_size=6), min_size=1, max_size=3))
    def whole(self, found: list[list[tuple[object, ...]]]) -> None:
        """A file of several batches that ends."""
        with self.index.staged():
            for batch in found:
                self.write(batch)
        self.published = self.model.copy()

    @rule(found=st.lists(things, min_size=1, max_size=6))
    def broken_off(self, found: list[tuple[object, ...]]) -> None:
        """A batch that is written and not published, and written once more by whoever comes next."""

        class Crash(Exception):
            pass

        try:
            with self.index.staged():
                self.write(found)
                raise Crash
        except Crash:
            pass
        self.index = Index.open(self.index.uri)
        try:
            with self.index.staged():
                apply(Batch(items=tuple(items(found))), self.index, self.maker, None, Tally())
                raise Crash
        except Crash:
            pass

    @rule()
    def finish(self) -> None:
        """Comes to light what was written."""
        self.index.finish()
        self.published = self.model.copy()

    @invariant()
    def readers_see_what_was_published(self) -> None:
        reader = Index.open(self.index.uri)
        rows = reader.fetch(reader.ids())
        shown = {
            r.passage.id: (r.passage.text, r.passage.retracted, r.passage.concern) for r in rows
        }
        assert shown == self.published.shown()
        assert len(rows) == len(shown)


TestLiterature = Literature.TestCase
TestLiterature.settings = settings(
    max_examples=12,
    stateful_step_count=8,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
