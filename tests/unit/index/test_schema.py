from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.index.schema import (
    STORED,
    Meta,
    Row,
    arrow_schema,
    content,
    digest,
    from_arrow,
    own_flags,
    quantise,
    read_meta,
    to_arrow,
)
from posology.testing.models.embedder import HashEmbedder
from posology.text import DropReason, Span, locate
from posology.text.sentences import split
from posology.types import (
    MAX_PASSAGE,
    UNREADABLE,
    Flag,
    FlagKind,
    Pages,
    Passage,
    Phrases,
    SentenceRole,
    TokenCodes,
)

META = Meta(format=4, embedder="hash-16", dim=16, splitter=1, created="2026-01-01T00:00:00+00:00")

WORDS = st.text(st.characters(exclude_categories=["Cs"]))
PASSAGES = st.builds(
    Passage,
    id=WORDS,
    text=WORDS,
    title=WORDS,
    pmid=st.none() | WORDS,
    journal=st.none() | WORDS,
    year=st.none() | st.integers(1000, 9999),
    publication_types=st.lists(WORDS, max_size=3).map(tuple),
    mesh=st.lists(WORDS, max_size=3).map(tuple),
    retracted=st.booleans(),
    source=st.none() | WORDS,
    concern=st.booleans(),
    doi=st.none() | WORDS,
    pmcid=st.none() | WORDS,
    published=st.none() | WORDS,
    languages=st.lists(WORDS, max_size=3).map(tuple),
    trials=st.lists(WORDS, max_size=3).map(tuple),
    same_work=st.lists(WORDS, max_size=3).map(tuple),
    parent=st.none() | WORDS,
    section=st.none() | WORDS,
    authors=st.lists(WORDS, max_size=3).map(tuple),
    pages=st.none() | st.just(Pages(numbers=(2, 3, 2), starts=(0, 1, 7))),
    unread_pages=st.none() | st.integers(0, 5_000),
)


@given(st.lists(PASSAGES, min_size=1, max_size=4))
def test_what_goes_into_arrow_comes_out(passages: list[Passage]) -> None:
    sentences = [split(passage.text) for passage in passages]
    encoded = HashEmbedder(dim=16).embed_passages(passages, sentences)
    rows = [
        Row(passage=p, sentences=s, encoded=e, digest=digest(p))
        for p, s, e in zip(passages, sentences, encoded, strict=True)
    ]
    found = from_arrow(to_arrow(rows, arrow_schema(META)).select(list(STORED)))
    for row, retrieved in zip(rows, found, strict=True):
        assert retrieved.passage == replace(row.passage, flags=own_flags(row.passage))
        assert retrieved.sentences == row.sentences
        assert (retrieved.vector == row.encoded.vector).all()
        assert retrieved.sentence_vectors.dtype == np.int8
        expected = quantise(row.encoded.sentence_vectors)
        assert (retrieved.sentence_vectors == expected).all()
        assert retrieved.sentence_vectors.shape == (len(row.sentences), 16)


@pytest.mark.parametrize(
    ("text", "title", "shown"),
    [
        ("Salt helped them. " * 2_000, "Salt", 1_104),
        ("One. " + "salt " * 5_000 + ".", "Salt", 1),
        ("salt " * 5_000 + ".", "Salt", 1),
        ("Salt helped.", "Salt " * 5_000, 1),
        ("Salt helped." + " " * 30_000, "Salt", 1),
    ],
)
def test_a_passage_of_an_earlier_version_that_is_too_long_is_cut(
    text: str, title: str, shown: int
) -> None:
    """Its cost is another tenant's: what is left out is said, and a sentence that was cut is never quoted."""
    passage = Passage(id="a", text=text, title=title, trials=("NCT00000620",) * 3_000)
    sentences = split(text)
    (encoded,) = HashEmbedder(dim=16).embed_passages([passage], [sentences])
    n = len(sentences)
    starts = np.array([one.start for one in sentences], np.int32)
    row = Row(
        passage=passage,
        sentences=sentences,
        # two tokens of the heading, and one and a phrase of four letters of each sentence
        encoded=replace(
            encoded,
            tokens=TokenCodes(
                codes=np.zeros((2 + n, 1), np.uint8), counts=np.array([2, *[1] * n], np.int32)
            ),
        ),
        phrases=Phrases(
            starts=starts,
            ends=starts + 4,
            words=np.ones(n, np.int32),
            information=np.ones(n, np.float32),
            clauses=np.arange(n, dtype=np.int32),
            protected=np.zeros(n, np.bool_),
        ),
        roles=(SentenceRole.RESULTS,) * n,
        digest=digest(passage),
    )
    (found,) = from_arrow(to_arrow([row], arrow_schema(META)).select(list(STORED)))
    assert found.passage.length <= MAX_PASSAGE + 200
    assert len(found.sentences) == len(found.sentence_vectors) == shown
    assert found.tokens is not None
    assert found.phrases is not None
    assert found.roles is not None
    assert len(found.tokens.codes) == found.tokens.counts.sum() == 2 + shown
    assert len(found.phrases.starts) == len(found.roles) == shown
    readable = found.excerpt().readable().sentences
    assert all(one.of(found.passage.text) == one.of(text) for one in readable)
    for sentence in found.sentences:
        place = locate(sentence.of(found.passage.text), found.passage.text)
        assert isinstance(place, Span) == (sentence in readable)
    if len(found.passage.text) < len(text):
        said = found.passage.text.rpartition(UNREADABLE)[2]
        assert f"{len(text):,} characters" in said
        assert locate(said.strip(), found.passage.text) is DropReason.UNREADABLE


def test_quantised_vectors_keep_the_cosine() -> None:
    random = np.random.default_rng(0).normal(size=(200, 384)).astype(np.float32)
    unit = random / np.linalg.norm(random, axis=1, keepdims=True)
    exact = unit @ unit.T
    rounded = quantise(unit).astype(np.float32) / 127
    assert np.abs(rounded @ rounded.T - exact).max() < 0.02


def test_no_quantised_component_overflows() -> None:
    assert quantise(np.array([[-1.0000001, 1.0000001]], dtype=np.float32)).tolist() == [[-127, 127]]


def test_the_index_says_what_it_is() -> None:
    assert read_meta(arrow_schema(META)) == META
    assert read_meta(arrow_schema(META).remove_metadata()) is None


def test_a_digest_changes_with_every_field_and_with_the_vector() -> None:
    passage = Passage(id="a", text="b")
    others = [
        replace(passage, id="x"),
        replace(passage, text="x"),
        replace(passage, title="x"),
        replace(passage, pmid="1"),
        replace(passage, journal="x"),
        replace(passage, year=1999),
        replace(passage, unread_pages=2),
        replace(passage, publication_types=("x",)),
        replace(passage, mesh=("x",)),
        replace(passage, retracted=True),
        replace(passage, source="x"),
        replace(passage, concern=True),
        replace(passage, doi="x"),
        replace(passage, pmcid="x"),
        replace(passage, published="x"),
        replace(passage, languages=("x",)),
        replace(passage, trials=("x",)),
        replace(passage, same_work=("x",)),
        replace(passage, parent="x"),
        replace(passage, section="x"),
        replace(passage, authors=("x",)),
        replace(passage, pages=Pages(numbers=(3,), starts=(0,))),
    ]
    # flags are the index's, whatever the record says
    said = (Flag(kind=FlagKind.CORRECTION, source="retraction-watch", by=None, date=None),)
    assert digest(replace(passage, flags=said)) == digest(passage)
    assert len(others) == len(Passage.__dataclass_fields__) - 1
    digests = [digest(passage), digest(passage, b"v"), *map(digest, others)]
    assert len(set(digests)) == len(digests)
    assert digest(passage) == digest(Passage(id="a", text="b"))


def test_copies_of_one_text_have_one_content() -> None:
    text = "Aspirin lowered the risk of stroke in this trial of 300 adults. " * 5
    one = Passage(id="a", title="A trial", text=text)
    copy = Passage(id="b", title="A TRIAL.", text=text.replace(" ", "\n"), year=2001)
    assert content(one) == content(copy)
    assert content(one) != content(replace(one, text=text.replace("300", "301")))
    for written, other in (
        ("1.5 mg", "15 mg"),
        ("p < 0.05", "p > 0.05"),
        ("-5 kg", "5 kg"),
        ("1,5 mg", "15 mg"),
    ):
        assert content(replace(one, text=f"{text}{written}")) != content(
            replace(one, text=f"{text}{other}")
        )
    for written, other in (
        ("1,204 men", "1204 men"),
        ("0·48", "0.48"),
        ("−5 kg", "-5 kg"),
        ("5–10", "5-10"),
        ("p<0.05", "P < 0.05"),
    ):
        assert content(replace(one, text=f"{text}{written}")) == content(
            replace(one, text=f"{text}{other}")
        )
    # two headings of a few words may agree by chance
    assert content(Passage(id="a", text="See text.")) != content(Passage(id="b", text="See text."))


def test_the_abbreviations_of_a_text_are_columns() -> None:
    text = "Myocardial infarction (MI) was frequent."
    passage = Passage(id="a", text=text)
    (encoded,) = HashEmbedder(dim=16).embed_passages([passage], [split(text)])
    row = Row(passage=passage, sentences=split(text), encoded=encoded, digest="d")
    table = to_arrow([row], arrow_schema(META)).to_pydict()
    assert (table["shorts"], table["longs"]) == ([["MI"]], [["myocardial infarction"]])


def test_a_passage_without_authors_has_the_digest_that_earlier_versions_stored() -> None:
    # else every index would be encoded anew at its next ingest
    assert digest(Passage(id="p:1", text="Salt.")) == "19a93e5288dd4e669e141782106f522c"
    assert (
        digest(Passage(id="p:1", text="Salt.", authors=("Doe, A",)))
        != "19a93e5288dd4e669e141782106f522c"
    )


def test_a_digest_of_a_passage_without_pages_is_that_of_before_pages_were_known() -> None:
    known = "414b0d58e753efddbe381d91244a1109"
    assert digest(Passage(id="p:1", text="Salt helps.")) == known
    # so files of an earlier version that are read whole are not encoded anew
    assert digest(Passage(id="p:1", text="Salt helps.", unread_pages=0)) == known
