from __future__ import annotations

import pytest

from posology.types import Stage
from prompts.lengths import reply_tokens


@pytest.mark.parametrize("stage", list(Stage))
def test_every_stage_has_a_bound_of_its_own(stage: Stage) -> None:
    assert 64 <= reply_tokens(stage) <= 2_000
    assert reply_tokens(stage, 300) == 300
