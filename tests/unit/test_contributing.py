"""CONTRIBUTING.md tells the truth: its paths exist, and its names stand in the files that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROWS = [line for line in TEXT.splitlines() if re.match(r"\| (a|an|…|what|options) ", line)]
PATH = r"`((?:\w[\w.-]*/)+[\w.-]*|[\w.-]+\.(?:md|yml)|\.env\.example)`"


def test_there_are_rows() -> None:
    assert len(ROWS) > 40


@pytest.mark.parametrize("path", sorted(set(re.findall(PATH, TEXT))))
def test_every_path_exists(path: str) -> None:
    # a file that is to be added stands in a folder that is there
    place = re.split(r"NAME|GROUP", path)[0] if re.search("NAME|GROUP", path) else path
    folder = place if place.endswith("/") or place == path else place.rsplit("/", 1)[0]
    assert (ROOT / folder).exists()


def test_every_name_stands_in_its_file() -> None:
    found = re.findall(r"`(\w+)`(?: protocol)? in `([\w/.]+\.(?:py|lua))`", TEXT)
    assert len(found) > 15
    missing = [
        f"{name} in {path}"
        for name, path in found
        if not re.search(rf"\b{name}\b", (ROOT / path).read_text(encoding="utf-8"))
    ]
    assert not missing
