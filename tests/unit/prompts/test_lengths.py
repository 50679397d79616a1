from __future__ import annotations

import pytest

from posology.types import Stage
from prompts.lengths import reply_tokens


# vectors have no words, and a repair is bounded like the reply that it follows
@pytest.mark.parametrize("stage", sorted(set(Stage) - {Stage.EMBED, Stage.REPAIR}))
def test_every_stage_has_a_bound_of_its_own(stage: Stage) -> None:
    assert 64 <= reply_tokens(stage) <= 2_000
    assert reply_tokens(stage, 300) == 300
