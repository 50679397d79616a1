from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from posology.errors import EmbedderUnavailable
from posology.index.embedders import load
from posology.index.embedders.sentence_transformer import heading
from posology.types import Passage


def test_importing_the_package_loads_no_torch() -> None:
    program = "import sys, posology.index.embedders; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("name", ["no-such-model", "nobody/no-such-model", "a//b", "../nowhere"])
def test_a_missing_model_says_what_to_do(name: str) -> None:
    with pytest.raises(EmbedderUnavailable, match="hf download") as caught:
        load(name)
    assert caught.value.embedder == name


def test_a_folder_without_a_model_says_so(tmp_path: Path) -> None:
    with pytest.raises(EmbedderUnavailable, match="cannot be loaded"):
        load(str(tmp_path))


def test_damaged_weights_say_so(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text("[{")
    with pytest.raises(EmbedderUnavailable, match="cannot be loaded"):
        load(str(tmp_path))


@pytest.mark.parametrize(
    ("title", "expected"),
    [("", ""), ("A trial", "A trial. "), ("A trial.", "A trial. "), ("A trial?", "A trial? ")],
)
def test_a_title_is_ended_once(title: str, expected: str) -> None:
    assert heading(Passage(id="p", title=title, text="x")) == expected
