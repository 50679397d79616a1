"""Batches that are encoded elsewhere: the index is the one that a single process makes, row by row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.corpus.items import Record
from posology.errors import EncodingFailed, IndexFault, IndexMismatch
from posology.index.build.ingest import ingest
from posology.index.build.report import IngestReport
from posology.index.build.rows import BATCH, LocalRowBuilder, RowBuilder, RowSource
from posology.index.schema import TABLE
from posology.index.shards.collector import ShardRowBuilder
from posology.index.shards.encoder import ShardEncoder
from posology.index.shards.staging import Staging, Texts, key, shard_name
from posology.index.store import Index
from posology.testing.models.codec import TruncatingCodec
from posology.testing.models.embedder import HashEmbedder
from posology.testing.shards import ThreadShards
from posology.types import Encoded, Passage, Sentence
from strategies.compression.self_information.annotator import NgramScorer, SelfInformationAnnotator
from tests.support.examples import examples

DIM = 32


class Refusing(HashEmbedder):
    """Raises at one word, as an encoder does that meets something it cannot bear."""

    def embed_passages(
        self,
        passages: Sequence[Passage],
        sentences: Sequence[Sequence[Sentence]],
        codec: Any = None,
    ) -> list[Encoded]:
        if any("poison" in passage.text for passage in passages):
            raise ArithmeticError("it cannot bear this")
        return super().embed_passages(passages, sentences, codec)


def annotator() -> SelfInformationAnnotator:
    return SelfInformationAnnotator(NgramScorer())


def line(i: int, text: str | None = None) -> str:
    words = text or f"We gave aspirin to {i} patients. It did not help {i // 2} of them (note {i})."
    return json.dumps(
        {"id": f"n:{i}", "title": f"Trial {i % 5}", "text": words, "year": 1990 + i % 30}
    )


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{one}\n" for one in lines), encoding="utf-8")
    return path


def rows(index: Index) -> list[dict[str, Any]]:
    """Everything that the table holds, by id."""
    found: list[dict[str, Any]] = index.connection.open_table(TABLE).to_arrow().to_pylist()
    return sorted(found, key=lambda row: str(row["id"]))


def make(place: Path) -> Index:
    codec = TruncatingCodec(f"hash-{DIM}")
    return Index.create(place, f"hash-{DIM}", DIM, annotator=annotator().name, codec=codec)


def source(
    embedder: HashEmbedder | None = None,
    *,
    batch: int = BATCH,
    builder: RowBuilder | None = None,
) -> RowSource:
    return RowSource(
        embedder=embedder or HashEmbedder(dim=DIM),
        annotator=annotator(),
        codec=TruncatingCodec(f"hash-{DIM}"),
        builder=builder,
        batch=batch,
    )


def alone(place: Path, paths: Sequence[Path], *, batch: int) -> tuple[Index, IngestReport]:
    index = make(place) if not place.exists() else Index.open(place)
    return index, ingest(
        paths,
        index,
        source(batch=batch),
    )


def encoder(place: Path, embedder: HashEmbedder | None = None) -> ShardEncoder:
    return ShardEncoder(Index.open(place), source(embedder))


def together(
    place: Path,
    paths: Sequence[Path],
    *,
    batch: int,
    workers: int = 2,
    window: int = 4,
    embedder: type[HashEmbedder] = HashEmbedder,
) -> tuple[Index, IngestReport, ThreadShards]:
    index = make(place) if not place.exists() else Index.open(place)
    encoders = [encoder(place, embedder(dim=DIM)) for _ in range(workers)]
    # the writer's own embedder is there for its name
    own = HashEmbedder(dim=DIM)
    with ThreadShards(encoders) as queue:
        builder = ShardRowBuilder(index, queue, window=window)
        report = ingest(
            paths,
            index,
            source(own, batch=batch, builder=builder),
        )
        builder.close()
    assert own.embedded == 0
    assert Staging(index.connection, index.meta).names() == set()
    return index, report, queue


def test_two_workers_make_the_rows_that_one_process_makes(tmp_path: Path) -> None:
    a = write(tmp_path / "a.jsonl", *map(line, range(23)), "{oops", line(3, "Revised. Twice."))
    b = write(tmp_path / "b.jsonl", line(5, "From the second file."), line(40), line(23))
    one, first = alone(tmp_path / "one", [a, b], batch=4)
    two, second, queue = together(tmp_path / "two", [a, b], batch=4)
    assert rows(one) == rows(two)
    assert rows(two)[0]["tokens"] is not None
    assert rows(two)[0]["phrases"] is not None
    for name in ("written", "unchanged", "replaced", "bad", "files"):
        assert getattr(first, name) == getattr(second, name), name
    assert sorted(queue.encoded) == sorted(queue.offered)
    # what is in the index is handed to nobody
    _, again, quiet = together(tmp_path / "two", [a, b], batch=4)
    assert (again.written, quiet.offered) == (0, [])


def test_a_record_that_goes_back_to_what_it_was_is_written_again(tmp_path: Path) -> None:
    old, new = line(1, "As it was."), line(1, "As it became.")
    path = write(tmp_path / "a.jsonl", old)
    index, _, _ = together(tmp_path / "index", [path], batch=1)
    write(path, line(9), new, line(8), old)
    # when the last line is begun, the index still has it as it is
    _, report, _ = together(tmp_path / "index", [path], batch=1, window=8)
    assert report.written == 4
    assert Index.open(index.uri).fetch(["n:1"])[0].passage.text == "As it was."


def test_what_cannot_be_encoded_is_reported_alone(tmp_path: Path) -> None:
    bad = (6, 13)
    lines = [line(i, "A poison." if i in bad else None) for i in range(20)]
    path = write(tmp_path / "a.jsonl", *lines)
    index, report, _ = together(tmp_path / "two", [path], batch=8, embedder=Refusing)
    assert (report.written, report.bad) == (18, 2)
    said = [(found.record, found.line, found.path) for found in report.bad_records]
    assert said == [(f"n:{i}", i + 1, str(path)) for i in bad]
    assert "it cannot bear this" in report.bad_records[0].reason
    write(path, *(one for i, one in enumerate(lines) if i not in bad))
    one, _ = alone(tmp_path / "one", [path], batch=8)
    # the annotator has read the poison, so that what phrases tell differs
    plain = [{k: v for k, v in row.items() if k != "phrases"} for row in rows(index)]
    assert plain == [{k: v for k, v in row.items() if k != "phrases"} for row in rows(one)]


def test_what_could_not_be_encoded_is_tried_again_by_the_next_ingest(tmp_path: Path) -> None:
    lines = [line(i, "A poison." if i == 5 else None) for i in range(12)]
    path = write(tmp_path / "a.jsonl", *lines)
    later = write(tmp_path / "b.jsonl", line(2, "Revised."))
    paths = [path, later]
    _, first, _ = together(tmp_path / "index", paths, batch=4, embedder=Refusing)
    _, again, queue = together(tmp_path / "index", paths, batch=4, embedder=Refusing)
    assert (first.bad, again.bad, again.written) == (1, 1, 0)
    assert again.bad_records[0].record == "n:5"
    assert len(set(queue.offered)) == 1
    index, well, _ = together(tmp_path / "index", paths, batch=4)
    assert (well.bad, well.written) == (0, 1)
    assert len(index.ids()) == 12
    assert index.fetch(["n:2"])[0].passage.text == "Revised."
    _, quiet, _ = together(tmp_path / "index", paths, batch=4)
    assert (quiet.bad, quiet.written) == (0, 0)


def test_workers_that_can_encode_nothing_are_at_fault_and_not_the_records(tmp_path: Path) -> None:
    lines = [*map(line, range(8)), *(line(i, f"A poison of {i}.") for i in range(8, 20))]
    path = write(tmp_path / "a.jsonl", *lines)
    with pytest.raises(EncodingFailed, match="it cannot bear this") as failed:
        together(tmp_path / "index", [path], batch=8, embedder=Refusing, window=1)
    assert failed.value.tries == 2
    index, report, _ = together(tmp_path / "index", [path], batch=8)
    assert (report.bad, report.written, len(index.ids())) == (0, 12, 20)


def test_a_writer_that_ends_leaves_what_another_has_laid_out(tmp_path: Path) -> None:
    place = tmp_path / "index"
    first, second = make(place), Index.open(place)
    staging = Staging(second.connection, second.meta)
    with ThreadShards([]) as queue:
        builder = ShardRowBuilder(first, queue)
        with second.lock:
            staging.put_texts("0a", Texts(passages=(), learned=None))
            builder.close()
            assert staging.names() == {"0a"}
        builder.close()
        assert staging.names() == set()


def test_what_was_encoded_before_the_writer_died_is_not_encoded_again(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", *map(line, range(12)))
    place = tmp_path / "index"
    index = make(place)
    encoders = [encoder(place)]

    class Died(Exception):
        pass

    def die(_: object) -> None:
        raise Died

    first = ThreadShards(encoders)
    with first, pytest.raises(Died):
        ingest(
            [path],
            index,
            source(batch=2, builder=ShardRowBuilder(index, first, window=4)),
            progress=die,
        )
    assert len(first.encoded) >= 4
    kept = Staging(index.connection, index.meta).names()
    assert len(kept) >= 3
    counting = HashEmbedder(dim=DIM)
    again = Index.open(place)
    with ThreadShards([encoder(place, counting)]) as second:
        builder = ShardRowBuilder(again, second, window=4)
        ingest([path], again, source(batch=2, builder=builder))
        builder.close()
    # of twelve, two were written and the rest of those that were encoded lay beside the index
    assert counting.embedded == 12 - 2 * len(first.encoded)
    one, _ = alone(tmp_path / "one", [path], batch=2)
    assert rows(one) == rows(again)


def test_workers_that_lack_what_it_takes_end_the_ingest(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", *map(line, range(3)))
    index = make(tmp_path / "index")

    def lacking(_: str) -> bool:
        raise IndexMismatch("another embedder", index=index.uri)

    with ThreadShards([lacking]) as queue, pytest.raises(EncodingFailed) as failed:
        ingest([path], index, source(builder=ShardRowBuilder(index, queue)))
    assert failed.value.tries == 2
    assert "another embedder" in failed.value.reason
    with pytest.raises(IndexMismatch, match="hash-16"):
        ShardEncoder(index, RowSource(embedder=HashEmbedder(dim=16), annotator=annotator()))
    with pytest.raises(IndexMismatch, match="annotat"):
        ShardEncoder(index, RowSource(embedder=HashEmbedder(dim=DIM)))


def test_a_shard_whose_rows_are_gone_is_encoded_once_more(tmp_path: Path) -> None:
    place = tmp_path / "index"
    path = write(tmp_path / "a.jsonl", *map(line, range(4)))
    index = make(place)
    encode = encoder(place)
    lost: list[str] = []

    def forgetful(name: str) -> bool:
        done = encode(name)
        if not lost:
            lost.append(name)
            encode._staging.drop([name])
        return done

    with ThreadShards([forgetful]) as queue:
        report = ingest([path], index, source(batch=2, builder=ShardRowBuilder(index, queue)))
    assert report.written == 4
    assert queue.encoded.count(lost[0]) == 2


def test_texts_and_rows_of_another_shard_are_not_taken(tmp_path: Path) -> None:
    place = tmp_path / "index"
    index = make(place)
    path = write(tmp_path / "a.jsonl", line(1))
    staging = Staging(index.connection, index.meta)
    other = Passage(id="x", text="Another.")
    encode = encoder(place)

    def texts(name: str) -> bool:
        staging.put_texts(name, Texts(passages=(other,), learned=None))
        return encode(name)

    def rows_of_another(name: str) -> bool:
        builder = LocalRowBuilder(embedder=HashEmbedder(dim=DIM), annotator=annotator(), codec=None)
        record = Record(passage=other, path=path, line=1, row=0)
        staging.put_rows(name, list(builder.rows([(record, "d")], None)))
        return True

    for work, error, said in (
        (texts, EncodingFailed, "does not belong"),
        (rows_of_another, IndexFault, "damaged"),
    ):
        with ThreadShards([work]) as queue, pytest.raises(error, match=said):
            ingest([path], index, source(builder=ShardRowBuilder(index, queue)))


def test_texts_are_what_was_laid_out_and_a_notice_changes_no_name(tmp_path: Path) -> None:
    index = make(tmp_path / "index")
    staging = Staging(index.connection, index.meta)
    passages = tuple(
        Passage(
            id=f"p:{i}",
            text="Ümlaut — 中文 \N{DNA DOUBLE HELIX}",
            title="",
            mesh=("A", "B"),
            year=None,
        )
        for i in range(3)
    )
    staging.put_texts("0a", Texts(passages=passages, learned="xyz"))
    assert staging.texts("0a") == Texts(passages=passages, learned="xyz")
    assert staging.texts("0b") is None
    assert staging.names() == {"0a"}
    staging.clear()
    assert staging.names() == set()
    flagged = Passage(id="p:0", text="T.", retracted=True, concern=True)
    plain = Passage(id="p:0", text="T.")
    assert key(flagged) == key(plain) != key(Passage(id="p:0", text="U."))
    assert shard_name([key(plain)], index.meta, None) != shard_name([key(plain)], index.meta, "xyz")


_lines = st.lists(
    st.tuples(st.integers(0, 6), st.sampled_from(["One. Two.", "Three.", "Four five. Six."])),
    min_size=1,
    max_size=16,
)


@examples(4)
@given(
    files=st.lists(_lines, min_size=1, max_size=3),
    batch=st.integers(1, 5),
    window=st.integers(1, 4),
)
def test_however_the_records_come_the_index_is_the_same(
    files: list[list[tuple[int, str]]],
    batch: int,
    window: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("shards")
    paths = [
        write(folder / f"{n}.jsonl", *(line(i, text) for i, text in one))
        for n, one in enumerate(files)
    ]
    one, first = alone(folder / "one", paths, batch=batch)
    two, second, _ = together(folder / "two", paths, batch=batch, window=window)
    assert rows(one) == rows(two)
    assert (first.written, first.unchanged, first.replaced) == (
        second.written, second.unchanged, second.replaced,
    )  # fmt: skip


def test_a_record_without_a_place_among_those_begun_is_encoded_all_the_same(tmp_path: Path) -> None:
    place = tmp_path / "index"
    index = make(place)
    from posology.index.learned import Learned, keep_learned

    data = annotator().dump()
    assert data is not None
    keep_learned(index.connection, Learned(annotator=annotator().name, passages=0, data=data))
    record = Record(passage=Passage(id="n:1", text="Late."), path=Path("a"), line=1, row=0)
    with ThreadShards([encoder(place)]) as queue:
        builder = ShardRowBuilder(index, queue)
        (row,) = builder.rows([(record, "d")], None)
    assert (row.passage, row.digest) == (record.passage, "d")


def article(i: int, text: str) -> str:
    return (
        f"<PubmedArticle><MedlineCitation><PMID>{i}</PMID><Article><ArticleTitle>Trial {i}</ArticleTitle>"
        f"<Abstract><AbstractText>{text}</AbstractText></Abstract></Article></MedlineCitation></PubmedArticle>"
    )


@examples(3)
@given(
    files=st.lists(
        st.tuples(_lines, st.lists(st.integers(1, 7), max_size=3)), min_size=1, max_size=3
    ),
    batch=st.integers(1, 4),
    window=st.integers(1, 4),
)
def test_revisions_and_deletions_keep_the_order_of_the_files(
    files: list[tuple[list[tuple[int, str]], list[int]]],
    batch: int,
    window: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("shards")
    paths = []
    expected: dict[str, str] = {}
    for n, (records, deleted) in enumerate(files):
        articles = "".join(article(i + 1, text) for i, text in records)
        gone = "".join(f"<PMID>{i}</PMID>" for i in deleted)
        end = f"<DeleteCitation>{gone}</DeleteCitation>" if gone else ""
        content = f"<PubmedArticleSet>{articles}{end}</PubmedArticleSet>"
        paths.append(write(folder / f"pubmed26n{n:04}.xml", content))
        expected |= {f"pmid:{i + 1}": text for i, text in records}
        for i in deleted:
            expected.pop(f"pmid:{i}", None)
    one, _ = alone(folder / "one", paths, batch=batch)
    two, _, _ = together(folder / "two", paths, batch=batch, window=window)
    assert rows(one) == rows(two)
    assert {row["id"]: row["document"].partition("\n")[2] for row in rows(two)} == expected
