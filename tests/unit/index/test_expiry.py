"""When expired versions are unpinned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from posology.index.versions import KEEP_VERSIONS, LEAST, expire

HOUR = timedelta(hours=1)


class Branches:
    """Branches of versions 1, 2, …, the newest last."""

    def __init__(self, *ages: timedelta, growing: bool = False) -> None:
        now = datetime.now(UTC)
        times = [(now - age).strftime("%Y%m%dT%H%M%S%f") for age in ages]
        name = "growing-{}-{}Z-1-9" if growing else "published-{}-{}Z"
        self.names = [name.format(n, time) for n, time in enumerate(times, start=1)]

    def list(self) -> list[str]:
        return list(self.names)

    def delete(self, name: str) -> None:
        self.names.remove(name)


@pytest.mark.parametrize(
    ("keep", "late"),
    [
        pytest.param(timedelta(0), LEAST / 10, id="a tenth of the minimum"),
        pytest.param(4 * HOUR, 4 * HOUR / 10, id="a tenth"),
        pytest.param(KEEP_VERSIONS, HOUR, id="an hour at most"),
    ],
)
def test_expired_versions_wait_for_each_other(keep: timedelta, late: timedelta) -> None:
    moment, kept = timedelta(minutes=1), max(keep, LEAST)
    # version 1 was replaced by the second, and so on; the fourth is the newest
    waiting = Branches(2 * kept, kept + late - moment, kept + moment, kept - moment)
    assert expire(SimpleNamespace(branches=waiting), "index", keep) == ()
    assert len(waiting.names) == 4
    due = Branches(2 * kept, kept + late + moment, kept + moment, kept - moment)
    assert expire(SimpleNamespace(branches=due), "index", keep) == (1, 2)
    assert len(due.names) == 2


def test_versions_of_a_first_ingest_expire_by_the_minimum() -> None:
    growing = Branches(3 * HOUR, 2 * HOUR, HOUR / 2, growing=True)
    assert expire(SimpleNamespace(branches=growing), "index", KEEP_VERSIONS) == (1,)
