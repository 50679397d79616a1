"""The tier batch under faults, in small; ``python -m evals.load.lanes`` does it with 2,000 rows."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from evals.load.lanes import MODELS, Trial, run_trial

pytestmark = pytest.mark.slow

#: seconds: a batch that a killed worker did not create is given up after minutes
_PATIENCE = 1_200


@pytest.mark.anyio
@pytest.mark.timeout(_PATIENCE)
@pytest.mark.parametrize("provider", list(MODELS))
async def test_every_row_ends_and_nothing_is_paid_twice(provider: str, tmp_path: Path) -> None:
    cap = Decimal("0.03") if provider == "openai" else Decimal("0.36")
    seen = await run_trial(tmp_path, Trial(provider=provider, rows=60, cap=cap, batch_rows=10))
    assert seen.wrong == []
    assert seen.rows["succeeded"] + seen.rows["failed"] == 60
    assert seen.peak <= cap
