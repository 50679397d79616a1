"""An answer names passages by their ids, not by the labels of a prompt that its reader does not see."""

from __future__ import annotations

import pytest

from posology.types import Excerpt, Passage
from strategies.evidence import name_sources

SHOWN = tuple(
    Excerpt(passage=Passage(id=f"pmid:{n}", text="It did."), sentences=()) for n in (70, 80)
)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("It does [P1].", "It does [pmid:70]."),
        ("It does [P1, 2015, Clinical Trial, Phase I].", "It does [pmid:70, 2015, Clinical Trial, Phase I]."),
        ("It does (P1, P2).", "It does [pmid:70, pmid:80]."),
        ("It does [P2;P1] and [P1]", "It does [pmid:80;pmid:70] and [pmid:70]"),
        # no label of a passage that was shown, or no label at all
        ("It does [P3].", "It does [P3]."),
        ("The P1 wave (P1 latency) and P2.", "The P1 wave (P1 latency) and P2."),
        ("[P0], [P99999999999999999999] [PP1]", "[P0], [P99999999999999999999] [PP1]"),
    ],
)  # fmt: skip
def test_labels_in_brackets_become_ids(text: str, named: str) -> None:
    assert name_sources(text, SHOWN) == named
