"""Noise in the abstract of one record changes no other, in every format with many records a file."""

from pathlib import Path

import pytest

from evals.corpus.fuzz import check_neighbours
from evals.corpus.seeds import MANY, NOISE
from posology.corpus.files import KINDS, Kind

_KINDS = [kind for kind in KINDS if kind.name in MANY]


def test_every_format_with_many_records_has_five_to_try() -> None:
    assert {kind.name for kind in KINDS} - set(MANY) == {
        "clinicaltrials", "jats archive", "html", "word", "text", "pdf", "zotero",
    }  # fmt: skip


@pytest.mark.parametrize("kind", _KINDS, ids=lambda kind: kind.name)
def test_noise_in_a_record_changes_no_other(kind: Kind, tmp_path: Path) -> None:
    for noise in NOISE:
        check_neighbours(kind, tmp_path / f"any{kind.suffixes[0]}", 2, noise)
