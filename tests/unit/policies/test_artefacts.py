from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from policies import artefacts
from policies.qtable import ACTIONS
from posology.errors import BadArtefact
from tests.unit.policies.tables import table

whole = st.floats(-1e6, 1e6, allow_subnormal=True)


@given(
    arrays(np.float64, (2, len(ACTIONS)), elements=whole),
    arrays(np.int64, (2, len(ACTIONS)), elements=st.integers(0, 2**40)),
    arrays(np.float32, (2, 3), elements=st.floats(-10, 10, width=32)),
)
def test_a_table_comes_back_to_the_last_bit(q: Any, visits: Any, centroids: Any) -> None:
    of = table(
        states=2, dim=3, q=np.where(visits > 0, q, np.nan), visits=visits, centroids=centroids
    )
    back = artefacts.read(artefacts.write(of), path="t.json")
    assert back.digest == of.digest
    assert back.q.tobytes() == of.q.tobytes()
    assert back.centroids.tobytes() == of.centroids.tobytes()
    assert back.visits.tolist() == of.visits.tolist()
    assert artefacts.write(back) == artefacts.write(of)


def test_all_that_is_said_comes_back() -> None:
    of = table(
        kind="concatenation", parent="0" * 16, fallback=0.4, prompts={"answer": "x", "a": "y"}
    )
    back = artefacts.read(artefacts.write(of), path="t.json")
    for name in type(of).__slots__:
        if name not in ("centroids", "q", "visits"):
            assert getattr(back, name) == getattr(of, name), name


def test_it_is_json_without_nan() -> None:
    of = table(visits=0, q=np.full((3, len(ACTIONS)), np.nan))

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    said = json.loads(artefacts.write(of), parse_constant=refuse)
    assert said["q"][0] == [None] * len(ACTIONS)
    assert said["posology"] == "qtable"


def _changed(**changes: Any) -> str:
    return json.dumps(json.loads(artefacts.write(table())) | changes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("[1]", "not a Q-table"),
        ('{"posology": "preflight"}', "not a Q-table"),
        (_changed(format=2), "format 2"),
        (_changed(alpha=0.6), "digest"),
        (_changed(digest=None), "digest"),
        (_changed(visits=[[6]]), "damaged"),
        (_changed(visits=[[6.5] * 10] * 3), "whole numbers"),
        (_changed(q="many"), "damaged"),
        (_changed(created="yesterday"), "damaged"),
        (_changed(prompts=[]), "damaged"),
        (_changed(k=None), "damaged"),
        (_changed(kind="product"), "damaged"),
        (_changed(visits=[[2**70] * 10] * 3), "damaged"),
        (_changed(centroids={"shape": [3, 4], "float32": "AAAA"}), "damaged"),
        (_changed(centroids={"shape": [3, 4]}), "'float32'"),
        (artefacts.write(table())[:-20], "not JSON"),
    ],
    ids=lambda value: value if len(value) < 30 else "",
)
def test_what_is_damaged_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadArtefact, match=said) as caught:
        artefacts.read(text, path="t.json")
    assert caught.value.path == "t.json"
    assert str(caught.value).startswith("t.json: ")


@pytest.mark.parametrize("name", sorted(json.loads(artefacts.write(table())).keys()))
def test_nothing_may_be_missing(name: str) -> None:
    said = json.loads(artefacts.write(table()))
    del said[name]
    with pytest.raises(BadArtefact):
        artefacts.read(json.dumps(said), path="t.json")


@given(st.data())
def test_no_cut_file_is_a_table(data: st.DataObject) -> None:
    text = artefacts.write(table())
    cut = data.draw(st.integers(0, len(text.rstrip()) - 1))
    with pytest.raises(BadArtefact):
        artefacts.read(text[:cut], path="t.json")
