"""Replies of real language models, run through parsing, guard, support and verdicts as they came.

``python -m evals.live ask`` and ``record`` make them; a change of what becomes of one shows here.
"""

from __future__ import annotations

from functools import cache

import pytest

from tests.support.recorded import DATA, Library, Row, library, outcome, rows, stale

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(
        not DATA.exists(), reason=f"the passages of the recordings are not in {DATA}"
    ),
]
ROWS = list(rows())


@cache
def known() -> Library:
    return library(DATA)


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row['model']}-{row['way']}-{row['set']}-{row['id']}"
)
async def test_what_becomes_of_a_reply_is_what_it_was(row: Row) -> None:
    assert await outcome(row, known()) == row["outcome"]


def test_recordings_are_of_the_present_prompts() -> None:
    calls = sum(len(row["calls"]) for row in ROWS)
    if old := sum(map(stale, ROWS)):
        pytest.skip(f"{old} of {calls} recorded replies are to older prompts: record them anew")
