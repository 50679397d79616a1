from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posology.index.search.folding import Fold, Work, fold
from posology.types import Folded, Hit, Ranking, SameAs


def ranking(*rows: str, method: str = "dense") -> Ranking:
    hits = (Hit(passage_id=row, score=float(-i)) for i, row in enumerate(rows))
    return Ranking(method=method, hits=tuple(hits))


def work(name: str, **fields: object) -> Work:
    return Work(**{"id": f"pmid:{name}", "content": name, **fields})  # type: ignore[arg-type]


def test_a_copy_takes_no_place() -> None:
    of = {row: work(row) for row in "abc"} | {"d": work("d", content="a")}
    shown, folded = fold({"dense": ranking("a", "d", "b", "c")}, of, how=Fold.WORKS)
    assert shown["dense"].ids == ("a", "b", "c")
    assert folded == (Folded(id="pmid:d", into="pmid:a", why=SameAs.COPY),)


def test_the_article_stands_for_its_preprint_in_the_best_place() -> None:
    of = {
        "p": work("p", preprint=True, same_work=("pmid:a",)),
        "b": work("b"),
        "a": work("a"),
    }
    rankings = {"dense": ranking("p", "b", "a"), "bm25": ranking("b", "p", method="bm25")}
    shown, folded = fold(rankings, of, how=Fold.WORKS)
    assert shown["dense"].ids == ("a", "b")
    assert shown["bm25"].ids == ("b", "a")
    assert shown["bm25"].method == "bm25"
    assert [hit.score for hit in shown["bm25"].hits] == [0.0, -1.0]
    assert folded == (Folded(id="pmid:p", into="pmid:a", why=SameAs.VERSION),)


def test_publications_of_one_trial_count_once_where_that_is_wanted() -> None:
    of = {
        "a": work("a", trials=("NCT1",)),
        "b": work("b", trials=("NCT2", "NCT1")),
        # the parts of one article report one trial and are not each other
        "c": work("c", trials=("NCT1",), part=True),
    }
    found = {"dense": ranking("b", "a", "c")}
    assert fold(found, of, how=Fold.WORKS) == (found, ())
    shown, folded = fold(found, of, how=Fold.TRIALS)
    assert shown["dense"].ids == ("b", "c")
    assert folded == (Folded(id="pmid:a", into="pmid:b", why=SameAs.TRIAL),)


def kept(**of: Work) -> tuple[str, ...]:
    shown, _ = fold({"dense": ranking(*of)}, of, how=Fold.WORKS)
    return shown["dense"].ids


def test_the_new_version_of_a_review_stands_for_the_old_ones() -> None:
    old = work("a", year=2005, same_work=("pmid:b",))
    assert kept(a=old, b=work("b", year=2012, same_work=("pmid:c",)), c=work("c", year=2020)) == (
        "c",
    )
    # unless it was retracted, or it is not known which is which
    assert kept(a=old, b=work("b", year=2012, retracted=True, same_work=("pmid:a",))) == ("a",)
    assert kept(a=old, b=work("b", same_work=("pmid:a",))) == ("a",)
    # and a preprint's day says nothing against its article
    assert kept(p=work("p", year=2020, preprint=True, same_work=("pmid:a",)), a=old) == ("a",)


@pytest.mark.parametrize("how", [Fold.WORKS, Fold.TRIALS])
@pytest.mark.parametrize(
    "claims",
    [
        {"year": 2030},
        {"year": 1990},
        {},
        {"preprint": True},
        {"concern": True},
    ],
)
def test_no_record_hides_one_that_does_not_name_it(how: Fold, claims: dict[str, object]) -> None:
    """Whoever may add a record can claim to be the new version of any article."""
    of = {
        "x": work("x", same_work=("pmid:a", "pmid:y"), **claims),
        # a copy of the article, which vouches for the claim
        "y": work("y", content="a", same_work=("pmid:x",), **claims),
        "z": work("z", content="x", **claims),
        "a": work("a", year=2010, trials=("NCT1",)),
    }
    for order in permutations(of):
        shown, _ = fold({"dense": ranking(*order)}, of, how=how)
        assert "a" in {of[row].content for row in shown["dense"].ids}


def test_a_record_that_alone_names_another_gives_way_to_it() -> None:
    named = work("b", year=2012)
    assert kept(a=work("a", year=2012, same_work=("pmid:b",)), b=named) == ("b",)
    # a new version does not: which of both is right, its reader sees
    assert kept(a=work("a", year=2013, same_work=("pmid:b",)), b=named) == ("a", "b")
    gone = work("b", year=2012, retracted=True)
    assert kept(a=work("a", year=2012, same_work=("pmid:b",)), b=gone) == ("a", "b")


def test_what_was_retracted_does_not_stand_for_what_replaced_it() -> None:
    gone = work("a", year=2015, retracted=True, same_work=("pmid:b",))
    assert kept(a=gone, b=work("b", year=2015)) == ("b",)


def test_a_copy_that_does_not_know_of_a_warning_does_not_hide_it() -> None:
    assert kept(a=work("a"), b=work("b", content="a", concern=True)) == ("b",)
    warned = work("b", content="a", retracted=True)
    assert kept(a=work("a", concern=True), b=warned) == ("b",)
    # of another paper of the trial no warning is
    of = {"a": work("a", trials=("NCT1",)), "b": work("b", trials=("NCT1",), concern=True)}
    assert fold({"dense": ranking("a", "b")}, of, how=Fold.TRIALS)[0]["dense"].ids == ("a",)


def test_nothing_is_folded_where_nobody_wants_it() -> None:
    of = {"a": work("a"), "b": work("b", content="a")}
    found = {"dense": ranking("a", "b")}
    assert fold(found, of, how=Fold.OFF) == (found, ())


ROWS = "abcdefgh"
WORKS = st.fixed_dictionaries(
    {
        row: st.builds(
            Work,
            id=st.just(f"pmid:{row}"),
            content=st.sampled_from("xyz") | st.just(row),
            same_work=st.lists(st.sampled_from([f"pmid:{r}" for r in ROWS + "z"]), max_size=1).map(
                tuple
            ),
            trials=st.lists(st.sampled_from(["NCT1", "NCT2"]), max_size=1).map(tuple),
            preprint=st.booleans(),
            part=st.booleans(),
            year=st.none() | st.integers(2000, 2002),
            retracted=st.booleans(),
            concern=st.booleans(),
        )
        for row in ROWS
    }
)
ORDERS = st.permutations(ROWS).flatmap(lambda rows: st.integers(0, 8).map(lambda n: rows[:n]))


@given(WORKS, ORDERS, ORDERS, st.sampled_from(Fold))
@settings(deadline=None)
def test_every_work_keeps_its_best_place(
    of: dict[str, Work], one: list[str], other: list[str], how: Fold
) -> None:
    found = {"dense": ranking(*one), "bm25": ranking(*other, method="bm25")}
    shown, folded = fold(found, of, how=how)
    into = {item.id: item.into for item in folded}
    # what stands for another stands for itself
    assert not set(into) & set(into.values())
    for name, before in found.items():
        rows = shown[name].ids
        assert len(set(rows)) == len(rows)
        stands = [into.get(of[row].id, of[row].id) for row in before.ids]
        assert [of[row].id for row in rows] == list(dict.fromkeys(stands))
    assert fold(shown, of, how=how)[0] == shown
