from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.errors import InvalidQuery
from posology.index.search import filters as filtering
from posology.index.search.retriever import Retriever
from posology.index.store import Index
from posology.query import make_query
from posology.testing.models.embedder import HashEmbedder
from posology.types import Filters, Passage
from tests.unit.index.conftest import MakeRows

NASTY = "O'Brien' OR 1=1 --"
JOURNALS = (None, "Lancet", "LANCET", "The Lancet. Oncology", NASTY, "Revue médicale", 'a"b\\')
TYPES = ("Randomized Controlled Trial", "Meta-Analysis", "Letter")
HEADINGS = ("Aspirin", "Aspirin/*therapeutic use", "*Pre-Eclampsia/prevention & control", "Humans")
LANGUAGES = ("eng", "fre", "ger")
WORDS = ("aspirin", "stroke", "sleep", "risk", "trial")


def _passage(number: int) -> Passage:
    """One of 240 passages in which every field takes each of its values beside each of the others'."""
    pick = np.random.default_rng(number)
    return Passage(
        id=f"p:{number}",
        text=f"{pick.choice(WORDS)} and {pick.choice(WORDS)} in study {number}.",
        journal=JOURNALS[pick.integers(len(JOURNALS))],
        year=None if number % 9 == 0 else int(pick.integers(1990, 2024)),
        publication_types=tuple(t for t in TYPES if pick.random() < 0.4),
        mesh=tuple(m for m in HEADINGS if pick.random() < 0.4),
        languages=tuple(x for x in LANGUAGES if pick.random() < 0.4),
        retracted=bool(pick.random() < 0.1),
    )


PASSAGES = [_passage(number) for number in range(240)]


def _matches(passage: Passage, filters: Filters) -> bool:
    """What the filters mean, said without an index."""

    def any_of(wanted: Sequence[str], own: Sequence[str]) -> bool:
        return not wanted or bool({w.strip().lower() for w in wanted} & {o.lower() for o in own})

    def headings(names: Sequence[str]) -> list[str]:
        return [name.split("/")[0].strip(" *") for name in names]

    return (
        (filters.since is None or (passage.year is not None and passage.year >= filters.since))
        and (filters.until is None or (passage.year is not None and passage.year <= filters.until))
        and any_of(filters.publication_types, passage.publication_types)
        and any_of(filters.journals, [passage.journal] if passage.journal else [])
        and any_of(headings(filters.mesh), headings(passage.mesh))
        and any_of(filters.languages, passage.languages)
    )


def _names(known: Sequence[str | None]) -> st.SearchStrategy[tuple[str, ...]]:
    spelt = st.sampled_from([name for name in known if name]).flatmap(
        lambda name: st.sampled_from([name, name.upper(), name.lower(), f"  {name} "])
    )
    return st.lists(spelt, max_size=2).map(tuple)


YEARS = st.none() | st.integers(1985, 2025)


def _in_order(years: tuple[int | None, int | None]) -> bool:
    since, until = years
    return since is None or until is None or since <= until


FILTERS = st.builds(
    lambda years, types, journals, mesh, languages: Filters(
        since=years[0], until=years[1], publication_types=types, journals=journals, mesh=mesh, languages=languages
    ),
    st.tuples(YEARS, YEARS).filter(_in_order),
    _names(TYPES),
    _names(JOURNALS),
    _names(HEADINGS),
    _names(LANGUAGES),
)  # fmt: skip


@pytest.fixture(scope="module", params=["no indices", "exact", "approximate", "half indexed"])
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Index:
    from posology.index.schema import Row, digest
    from posology.text.sentences import split

    embedder = HashEmbedder(dim=16)
    index = Index.create(tmp_path_factory.mktemp("filters") / "index", embedder.name, 16)
    rows = []
    for passage in PASSAGES:
        sentences = split(passage.text)
        (encoded,) = embedder.embed_passages([passage], [sentences])
        rows.append(Row(passage=passage, sentences=sentences, encoded=encoded, digest=digest(passage)))  # fmt: skip
    many = 10**9
    if request.param == "no indices":
        index.upsert(rows)
    elif request.param == "half indexed":
        index.upsert(rows[:200])
        index.finish(exact_from=10, approximate_from=many)
        index.upsert(rows[200:])
    else:
        index.upsert(rows)
        index.finish(exact_from=10, approximate_from=many if request.param == "exact" else 100)
    return Index.open(index.uri)


@given(filters=FILTERS, k=st.integers(1, 300), word=st.sampled_from(WORDS), retracted=st.booleans())
def test_a_filtered_search_is_one_over_the_rows_that_match(
    filled: Index, filters: Filters, k: int, word: str, retracted: bool
) -> None:
    view = filled.view()
    allowed = [p for p in PASSAGES if _matches(p, filters) and (retracted or not p.retracted)]
    vector = HashEmbedder(dim=16).embed_queries([word])[0]
    dense = view.dense(vector, k, retracted=retracted, filters=filters)
    ids = {p.id for p in allowed}
    assert len(dense.hits) == min(k, len(allowed))
    assert set(dense.ids) <= ids
    everything = view.dense(vector, len(PASSAGES), retracted=True)
    best = sorted((h.score for h in everything.hits if h.passage_id in ids), reverse=True)[:k]
    if filled.info().vector_index == "IvfFlat" or k >= len(allowed):
        np.testing.assert_allclose([h.score for h in dense.hits], best, atol=1e-5)
    with_word = {p.id for p in allowed if word in p.text.split()}
    by_words = view.bm25(word, k, retracted=retracted, filters=filters)
    assert set(by_words.ids) <= with_word
    assert len(by_words.hits) == min(k, len(with_word))


@pytest.mark.parametrize("mode", ["dense", "fused", "dense>bm25"])
@pytest.mark.anyio
async def test_k_come_wherever_k_match(filled: Index, mode: str) -> None:
    filters = Filters(journals=("lancet",), publication_types=("LETTER",), since=2000)
    matching = {p.id for p in PASSAGES if _matches(p, filters) and not p.retracted}
    assert len(matching) > 4
    retriever = Retriever(filled, HashEmbedder(dim=16))
    found = await retriever.retrieve(
        make_query("aspirin for sleep"),
        4,
        mode,  # type: ignore[arg-type]
        filters=filters,
    )
    assert len(found.passages) == 4
    assert {p.passage.id for p in found.passages} <= matching
    for ranking in (found.dense, found.bm25, found.bm25_rerank, found.fused):
        assert set(ranking.ids) <= matching
    assert found.filters == filters


@pytest.mark.anyio
async def test_nothing_matches_nothing_comes(filled: Index) -> None:
    found = await Retriever(filled, HashEmbedder(dim=16)).retrieve(
        make_query("aspirin"), 5, filters=Filters(since=2090)
    )
    assert found.passages == ()


@pytest.mark.parametrize(
    ("filters", "field", "near"),
    [
        (Filters(journals=("lancett",)), "filters.journals", "LANCET"),
        (Filters(journals=("oncology",)), "filters.journals", "The Lancet. Oncology"),
        (Filters(publication_types=("Metaanalysis",)), "filters.publication_types", "Meta-Analysis"),
        (Filters(mesh=("Asprin",)), "filters.mesh", "Aspirin"),
        (Filters(languages=("english",)), "filters.languages", "no passage"),
        (Filters(journals=("' OR 'a'='a",)), "filters.journals", "no passage"),
    ],
)  # fmt: skip
@pytest.mark.anyio
async def test_a_name_that_no_passage_has_is_refused_with_those_that_come_near(
    filled: Index, filters: Filters, field: str, near: str
) -> None:
    with pytest.raises(InvalidQuery, match=near) as raised:
        await Retriever(filled, HashEmbedder(dim=16)).retrieve(
            make_query("aspirin"), 5, filters=filters
        )
    assert raised.value.field == field


def test_the_indices_answer_the_predicate(
    tmp_path: Path, embedder: HashEmbedder, make_rows: MakeRows
) -> None:
    index = Index.create(tmp_path / "index", embedder.name, embedder.dim)
    index.upsert(make_rows(PASSAGES))
    index.finish(exact_from=10)
    table = index.connection.open_table("passages")
    predicate = filtering.where(
        Filters(since=2000, journals=("Lancet", NASTY), mesh=("Aspirin",)), retracted=False
    )
    vector = np.ones(embedder.dim, np.float32)
    plan = table.search(vector, vector_column_name="vector").where(predicate, prefilter=True)
    told = plan.limit(5).explain_plan()
    assert "ScalarIndexQuery" in told
    assert "FilterExec: NOT retracted" not in told
    for name in ("year_idx(BTree)", "labels_idx(LabelList)", "retracted_idx(Bitmap)"):
        assert name in told


def test_a_quote_ends_no_literal() -> None:
    assert filtering.literal(NASTY) == "'O''Brien'' OR 1=1 --'"
    only = filtering.where(Filters(journals=(NASTY,)), retracted=True)
    assert only == "array_has_any(labels, ['journal:o''brien'' or 1=1 --'])"


@pytest.mark.parametrize(
    ("filters", "field"),
    [
        (Filters(since=2011, until=2010), "since"),
        (Filters(since=99), "since"),
        (Filters(until=20200), "until"),
        (Filters(journals=("a",) * 51), "journals"),
        (Filters(mesh=(" ",)), "mesh"),
        (Filters(languages=("e\0g",)), "languages"),
        (Filters(publication_types=("x" * 401,)), "publication_types"),
        (Filters(journals=("\ud800",)), "journals"),
    ],
)
def test_filters_that_cannot_be_are_refused(filters: Filters, field: str) -> None:
    with pytest.raises(InvalidQuery) as raised:
        filtering.check(filters)
    assert raised.value.field == f"filters.{field}"


@given(
    since=st.none() | st.integers(filtering.MIN_YEAR, 2000),
    until=st.none() | st.integers(2000, filtering.MAX_YEAR),
    names=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
    ),
)
def test_whatever_is_asked_for_is_told(
    since: int | None, until: int | None, names: list[str]
) -> None:
    kept = tuple(name for name in names if name.strip())[: filtering.MAX_NAMES]
    filters = Filters(since=since, until=until, journals=kept)
    filtering.check(filters)
    told = filtering.describe(filters)
    assert all(name in told for name in kept)
    assert all(str(year) in told for year in (since, until) if year is not None)
    assert bool(told) == bool(filters)


def test_labels_are_of_names_alone() -> None:
    passage = replace(PASSAGES[0], journal="The  LANCET ", mesh=("Aspirin/*adverse effects", "Aspirin"),
                      publication_types=("Letter",), languages=("eng",))  # fmt: skip
    assert filtering.labels(passage) == [
        "journal:the lancet", "language:eng", "mesh:aspirin", "type:letter",
    ]  # fmt: skip
    assert filtering.labels(Passage(id="a", text="b")) == []
