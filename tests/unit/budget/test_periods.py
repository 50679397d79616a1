from __future__ import annotations

from datetime import date, timedelta

import pytest

from posology.budget.spending.periods import DAYS, MAX_DAYS, Period, period, read_date
from posology.errors import InvalidQuery

TODAY = date(2026, 3, 1)


def test_a_period_has_both_of_its_ends() -> None:
    days = period(date(2026, 2, 27), date(2026, 3, 1), today=TODAY)
    assert list(days) == ["2026-02-27", "2026-02-28", "2026-03-01"]
    assert list(period(TODAY, TODAY, today=TODAY)) == ["2026-03-01"]


def test_what_is_not_said_is_the_last_days() -> None:
    assert period(None, None, today=TODAY) == Period(
        since=TODAY - timedelta(days=DAYS - 1), until=TODAY
    )
    assert period(None, date(2026, 1, 30), today=TODAY).since == date(2026, 1, 1)
    assert period(date(2026, 2, 1), None, today=TODAY).until == TODAY
    # there is no day before the first
    assert list(period(None, date.min, today=TODAY)) == ["0001-01-01"]
    assert list(period(date.max, date.max, today=TODAY)) == ["9999-12-31"]


def test_a_period_is_neither_empty_nor_endless() -> None:
    longest = TODAY - timedelta(days=MAX_DAYS - 1)
    assert len(list(period(longest, TODAY, today=TODAY))) == MAX_DAYS
    for since in (longest - timedelta(days=1), date.min, TODAY + timedelta(days=1)):
        with pytest.raises(InvalidQuery) as caught:
            period(since, TODAY, today=TODAY)
        assert caught.value.field == "since"


def test_a_day_is_read_as_it_is_written() -> None:
    assert read_date("2024-02-29", "since") == date(2024, 2, 29)


@pytest.mark.parametrize(
    "text", ["", "2026-02-29", "2026-1-1", "20260101", "2026-01-01T00:00", "٢٠٢٦-٠١-٠١", "0", "x"]
)
def test_what_is_no_day_is_told_with_its_field(text: str) -> None:
    with pytest.raises(InvalidQuery, match="until") as caught:
        read_date(text, "until")
    assert caught.value.field == "until"
