"""Corpus files into an index whose passages are annotated, with what the annotator has learned."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest

from orchestrator.ingest.ingest import run_ingest
from orchestrator.ingest.writer import Target
from orchestrator.settings import Settings
from posology.errors import IndexFault, IndexMismatch, ScorerUnavailable
from posology.index.build.ingest import ingest
from posology.index.build.report import IngestProgress
from posology.index.build.rows import RowSource
from posology.index.learned import Learned, keep_learned, read_learned
from posology.index.store import Index
from posology.testing.models.embedder import HashEmbedder
from posology.testing.models.language_model import save_tiny_language_model
from posology.types import Passage, Phrases, Sentence
from strategies.compression.self_information.annotator import NgramScorer, SelfInformationAnnotator

DRUGS = ("aspirin", "statins", "insulin", "warfarin", "metformin", "ibuprofen", "heparin")


class Annotator(SelfInformationAnnotator):
    """Tells how often it learned and remembered."""

    def __init__(self) -> None:
        super().__init__(NgramScorer())
        self.learned: list[int] = []
        self.restored = 0

    def learn(self, passages: Iterable[Passage]) -> None:
        read = list(passages)
        self.learned.append(len(read))
        super().learn(read)

    def restore(self, learned: bytes) -> None:
        self.restored += 1
        super().restore(learned)


def write(path: Path, *numbers: int) -> Path:
    lines = []
    for i in numbers:
        drug = DRUGS[i % len(DRUGS)]
        text = f"We gave {drug} to {i} patients, who did not object. It helped some of them."
        lines.append(json.dumps({"id": f"n:{i}", "title": f"On {drug}", "text": text}))
    path.write_text("\n".join([*lines, "{oops", ""]))
    return path


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder(dim=64)


def make(place: Path, embedder: HashEmbedder) -> Index:
    return Index.create(place, embedder.name, embedder.dim, annotator=Annotator().name)


def told(index: Index, i: int) -> Phrases:
    (found,) = index.fetch([f"n:{i}"])
    assert found.phrases is not None
    return found.phrases


def test_passages_come_back_with_their_phrases(tmp_path: Path, embedder: HashEmbedder) -> None:
    index = make(tmp_path / "index", embedder)
    report = ingest(
        [write(tmp_path / "a.jsonl", *range(30))],
        index,
        RowSource(embedder=embedder, annotator=Annotator()),
    )
    assert (report.written, report.bad) == (30, 1)
    (found,) = index.fetch(["n:7"])
    phrases, text = found.phrases, found.passage.text
    assert phrases is not None
    assert [text[a:b] for a, b in zip(phrases.starts, phrases.ends, strict=True)] == [
        "We gave aspirin",
        "to 7 patients,",
        "who did not object.",
        "It helped",
        "some of them.",
    ]
    assert phrases.protected.tolist() == [True, True, True, False, False]
    assert np.isfinite(phrases.information).all()
    assert index.info().annotator == Annotator().name
    index.finish()
    assert told(index, 7).ends.tolist() == phrases.ends.tolist()


def test_what_was_learned_is_kept_and_used_by_the_next_ingest(
    tmp_path: Path, embedder: HashEmbedder
) -> None:
    index = make(tmp_path / "index", embedder)
    ingest(
        [write(tmp_path / "a.jsonl", *range(20))],
        index,
        RowSource(embedder=embedder, annotator=Annotator()),
    )
    kept = read_learned(index.connection)
    assert kept is not None
    # with the bad record: what counts is the size of the files
    assert (kept.annotator, kept.passages) == (Annotator().name, 21)
    # another process, another machine
    later, again = Index.open(index.uri), Annotator()
    ingest(
        [write(tmp_path / "b.jsonl", *range(20, 50))],
        later,
        RowSource(embedder=embedder, annotator=again),
    )
    assert (again.learned, again.restored) == ([], 1)
    alone = Annotator()
    alone.restore(kept.data)
    (fetched,) = later.fetch(["n:42"])
    (expected,) = alone([fetched.passage], [fetched.sentences])
    assert told(later, 42).information == pytest.approx(expected.information, rel=1e-3)


def test_it_learns_anew_from_a_much_larger_corpus(tmp_path: Path, embedder: HashEmbedder) -> None:
    index = make(tmp_path / "index", embedder)
    ingest(
        [write(tmp_path / "trial.jsonl", 1, 2, 3)],
        index,
        RowSource(embedder=embedder, annotator=Annotator()),
    )
    before = told(index, 2).information
    annotator = Annotator()
    paths = [tmp_path / "trial.jsonl", write(tmp_path / "all.jsonl", *range(10, 60))]
    ingest(paths, index, RowSource(embedder=embedder, annotator=annotator))
    # what is in the index already stays as it is, and is not read again
    assert (annotator.learned, annotator.restored) == ([50], 0)
    kept = read_learned(index.connection)
    assert kept is not None
    assert kept.passages == 51
    assert told(index, 2).information.tolist() == before.tolist()


def test_nothing_is_learned_where_nothing_is_to_be_read(
    tmp_path: Path, embedder: HashEmbedder
) -> None:
    index = make(tmp_path / "index", embedder)
    path = write(tmp_path / "a.jsonl", 1, 2)
    ingest([path], index, RowSource(embedder=embedder, annotator=Annotator()))
    annotator = Annotator()
    assert ingest([path], index, RowSource(embedder=embedder, annotator=annotator)).unchanged == 2
    assert (annotator.learned, annotator.restored) == ([], 0)
    ingest([tmp_path / "none.jsonl"], index, RowSource(embedder=embedder, annotator=annotator))
    assert annotator.learned == []


@pytest.mark.parametrize("after", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 3))])
def test_an_ingest_that_was_broken_off_goes_on_with_the_same_model(
    tmp_path: Path, embedder: HashEmbedder, after: int
) -> None:
    """``after`` commits it is broken off; with none, between learning and the first commit."""
    paths = [
        write(tmp_path / "a.jsonl", *range(12)),
        write(tmp_path / "b.jsonl", *range(12, 70)),
    ]
    broken, whole = make(tmp_path / "broken", embedder), make(tmp_path / "whole", embedder)
    commits = 0

    def stop(_: IngestProgress) -> None:
        nonlocal commits
        commits += 1
        if commits == after:
            raise KeyboardInterrupt

    class Breaks(Annotator):
        def __call__(
            self, passages: Sequence[Passage], sentences: Sequence[Sequence[Sentence]]
        ) -> list[Phrases]:
            if not after:
                raise KeyboardInterrupt
            return super().__call__(passages, sentences)

    with pytest.raises(KeyboardInterrupt):
        ingest(
            paths, broken, RowSource(embedder=embedder, annotator=Breaks(), batch=5), progress=stop
        )
    resumed = Annotator()
    ingest(paths, broken, RowSource(embedder=embedder, annotator=resumed, batch=5))
    assert (resumed.learned, resumed.restored) == ([], 1)
    ingest(paths, whole, RowSource(embedder=embedder, annotator=Annotator(), batch=7))
    for i in range(70):
        one, other = told(broken, i), told(whole, i)
        assert one.starts.tolist() == other.starts.tolist()
        # kept probabilities are rounded
        assert one.information == pytest.approx(other.information, abs=0.05)


def test_another_annotator_or_none_is_refused(tmp_path: Path, embedder: HashEmbedder) -> None:
    index = make(tmp_path / "index", embedder)
    path = write(tmp_path / "a.jsonl", 1)
    other = SelfInformationAnnotator(NgramScorer(order=2))
    for annotator, name in ((other, other.name), (None, "nothing")):
        with pytest.raises(IndexMismatch, match=f"{Annotator().name}.*{name}"):
            ingest([path], index, RowSource(embedder=embedder, annotator=annotator))
    plain = Index.create(tmp_path / "plain", embedder.name, embedder.dim)
    with pytest.raises(IndexMismatch, match="self-information"):
        ingest([path], plain, RowSource(embedder=embedder, annotator=Annotator()))
    with pytest.raises(IndexMismatch, match="annotat"):
        Index.open_or_create(plain.uri, embedder.name, embedder.dim, annotator="x")
    ingest([path], plain, RowSource(embedder=embedder))
    assert plain.fetch(["n:1"])[0].phrases is None
    assert index.count() == 0


def test_a_damaged_model_is_named(tmp_path: Path, embedder: HashEmbedder) -> None:
    index = make(tmp_path / "index", embedder)
    damaged = Learned(annotator=Annotator().name, passages=100, data=b"oops")
    keep_learned(index.connection, damaged)
    keep_learned(index.connection, damaged)
    with pytest.raises(IndexFault, match=r"self-information-3:ngram-3-2 .*damaged"):
        ingest(
            [write(tmp_path / "a.jsonl", 1)],
            index,
            RowSource(embedder=embedder, annotator=Annotator()),
        )
    assert read_learned(index.connection) == damaged


def test_the_command_annotates_by_n_grams_or_by_the_model_that_is_named(
    tmp_path: Path, tiny_encoder: Path
) -> None:
    path = write(tmp_path / "a.jsonl", 1, 2)
    by_ngrams, by_model = tmp_path / "ngrams", tmp_path / "model"
    run_ingest([path], Settings(), Target(place=str(by_ngrams), embedder=str(tiny_encoder)))
    assert Index.open(by_ngrams).meta.annotator == "self-information-3:ngram-3-2"
    model = str(save_tiny_language_model(tmp_path / "gpt"))
    settings = Settings(POSOLOGY_SELF_INFORMATION=model)
    run_ingest([path], settings, Target(place=str(by_model), embedder=str(tiny_encoder)))
    index = Index.open(by_model)
    assert str(index.meta.annotator).startswith("self-information-3:gpt2:")
    assert read_learned(index.connection) is None
    # it knows nothing of English: every letter is news
    assert told(index, 1).information.min() > 15
    with pytest.raises(IndexMismatch):
        run_ingest([path], Settings(), Target(place=str(by_model), embedder=str(tiny_encoder)))
    nobody = Settings(POSOLOGY_SELF_INFORMATION="nobody/has-this")
    with pytest.raises(ScorerUnavailable):
        run_ingest([path], nobody, Target(place=str(by_model), embedder=str(tiny_encoder)))
