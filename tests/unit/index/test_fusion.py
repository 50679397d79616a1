from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.index.search.rankings import fuse
from posology.types import Hit, Ranking

ORDERS = st.lists(st.sampled_from("abcdefghij"), unique=True)


def ranking(ids: list[str] | str) -> Ranking:
    hits = tuple(Hit(passage_id=i, score=-float(n)) for n, i in enumerate(ids))
    return Ranking(method="dense", hits=hits)


def test_scores_are_the_papers() -> None:
    fused = fuse([ranking("ab"), ranking("bc")])
    assert fused.method == "fused"
    assert fused.ids == ("b", "a", "c")
    assert fused.hits[0].score == pytest.approx(1 / 62 + 1 / 61)
    assert fused.hits[1].score == pytest.approx(1 / 61)


def test_ties_go_to_the_ranking_that_came_first() -> None:
    assert fuse([ranking("ab"), ranking("cd")]).ids == ("a", "c", "b", "d")


def test_a_weight_makes_a_ranking_count_for_more() -> None:
    assert fuse([ranking("ab"), ranking("ba")], weights=[1, 2]).ids == ("b", "a")


def test_every_ranking_needs_its_weight() -> None:
    with pytest.raises(ValueError, match="shorter"):
        fuse([ranking("a"), ranking("b")], weights=[1])


@given(st.lists(ORDERS, max_size=4), st.floats(1, 1000))
def test_all_passages_come_once_best_first(orders: list[list[str]], k: float) -> None:
    fused = fuse([ranking(order) for order in orders], k=k)
    assert sorted(fused.ids) == sorted({i for order in orders for i in order})
    scores = [hit.score for hit in fused.hits]
    assert scores == sorted(scores, reverse=True)


@given(ORDERS, st.integers(1, 4))
def test_agreement_is_kept(order: list[str], times: int) -> None:
    assert fuse([ranking(order)] * times).ids == tuple(order)


@given(ORDERS, ORDERS)
def test_who_is_before_another_in_both_is_before_it_at_last(a: list[str], b: list[str]) -> None:
    fused = fuse([ranking(a), ranking(b)]).ids
    shared = [i for i in a if i in b]
    for x in shared:
        for y in shared:
            if a.index(x) < a.index(y) and b.index(x) < b.index(y):
                assert fused.index(x) < fused.index(y)


@given(ORDERS, ORDERS)
def test_scores_do_not_depend_on_the_order_of_the_rankings(a: list[str], b: list[str]) -> None:
    one = {hit.passage_id: hit.score for hit in fuse([ranking(a), ranking(b)]).hits}
    other = {hit.passage_id: hit.score for hit in fuse([ranking(b), ranking(a)]).hits}
    assert one == pytest.approx(other)
