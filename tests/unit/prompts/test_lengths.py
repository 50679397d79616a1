from __future__ import annotations

import pytest

from posology.types import Stage
from prompts.lengths import reply_tokens


# vectors have no words
@pytest.mark.parametrize("stage", [stage for stage in Stage if stage is not Stage.EMBED])
def test_every_stage_has_a_bound_of_its_own(stage: Stage) -> None:
    assert 64 <= reply_tokens(stage) <= 2_000
    assert reply_tokens(stage, 300) == 300
