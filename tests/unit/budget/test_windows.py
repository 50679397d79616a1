from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.budget.ledger.windows import day_of, resets
from posology.types import Scope

TIMES = st.datetimes(
    min_value=datetime(1970, 1, 1), max_value=datetime(2200, 12, 31), timezones=st.just(UTC)
)


@given(at=TIMES)
def test_a_day_is_the_calendars(at: datetime) -> None:
    assert day_of(at) == at.date().isoformat()


@given(at=TIMES, hours=st.integers(-14, 14))
def test_windows_are_utc_wherever_the_clock_is(at: datetime, hours: int) -> None:
    there = at.astimezone(timezone(timedelta(hours=hours)))
    assert day_of(there) == day_of(at)
    assert resets(Scope.DAY, there) == resets(Scope.DAY, at)
    assert resets(Scope.MONTH, there) == resets(Scope.MONTH, at)


@given(at=TIMES)
def test_a_window_ends_where_the_next_begins(at: datetime) -> None:
    for scope, length in ((Scope.DAY, 10), (Scope.MONTH, 7)):
        over = resets(scope, at)
        assert over is not None
        assert over > at
        before = day_of(over - timedelta(microseconds=1))
        assert day_of(over)[:length] != day_of(at)[:length] == before[:length]


@pytest.mark.parametrize("scope", [Scope.TOTAL, Scope.JOB, Scope.CALLS, "turn"])
def test_what_is_no_window_never_ends(scope: str) -> None:
    assert resets(scope, datetime(2026, 1, 15, tzinfo=UTC)) is None
