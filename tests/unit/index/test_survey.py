"""Comparison of an index with what a folder holds."""

from __future__ import annotations

from pathlib import Path

from posology.corpus.items import Record
from posology.index.schema import digest, provisional
from posology.index.sync.survey import Survey
from posology.types import Passage


def test_rows_that_are_encoded_only_in_part_are_changed(tmp_path: Path) -> None:
    """An interrupted quick ingest leaves them; their digests are no numbers."""
    passage = Passage(id="a", text="Salt helped.")
    with Survey.open(None) as survey:
        survey._add(0, Record(passage=passage, path=tmp_path / "a.jsonl", line=1, row=0), set())
        own = digest(passage)
        found = survey.compare(
            [("a", provisional(own)), ("b", provisional(own)), ("a", own)], note=False
        )
        assert (found.same, found.changed, found.gone) == (1, 1, 1)
        assert survey.holds("a", own)
        assert not survey.holds("a", provisional(own))
        assert not survey.holds("b", provisional(own))
