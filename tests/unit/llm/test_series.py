from __future__ import annotations

from posology.llm import series


def test_the_id_is_that_of_the_attempt_under_way() -> None:
    assert series.attempt_id() is None
    with series.one_call():
        assert series.attempt_id() is None
        series.current().attempt_id = "outer"
        with series.one_call():
            assert series.attempt_id() is None
            series.current().attempt_id = "inner"
            assert series.attempt_id() == "inner"
        assert series.attempt_id() == "outer"
    assert series.attempt_id() is None
