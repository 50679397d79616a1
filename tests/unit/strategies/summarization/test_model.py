from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.errors import ModelUnavailable
from posology.testing.models.summarizer import save_tiny_summarizer
from strategies.compression.summarization.model import Decoding, load, pieces

TEXTS = [
    "Aspirin lowered the risk of stroke in adults.",
    "",
    "The dose was 81 mg a day. Bleeding was not seen in patients. " * 9,
    "a",
    "Patients were adults.",
]


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("kind", ["mt5", pytest.param("t5", marks=pytest.mark.slow)])
def test_a_batch_is_as_one_by_one(tmp_path: Path, kind: str, beams: int) -> None:
    folder = save_tiny_summarizer(tmp_path, kind="t5" if kind == "t5" else "mt5")
    summarize = load(str(folder), decoding=Decoding(beams=beams))
    together = summarize(TEXTS)
    assert together == [summarize([text])[0] for text in TEXTS]
    assert together[1] == ""
    assert together[0] != together[4]
    assert kind in summarize.name
    assert f"beams={beams}" in summarize.name


def test_no_summary_has_more_tokens_than_its_text(tiny: Path) -> None:
    summarize = load(str(tiny))
    for text, summary in zip(TEXTS, summarize(TEXTS), strict=True):
        # special tokens aside, one for each character at least
        assert len(summary.split()) <= len(text) + 1


@pytest.mark.skipif(find_spec("sentencepiece") is not None, reason="it would be read")
def test_what_a_tokenizer_of_the_hub_needs_is_said(tmp_path: Path) -> None:
    save_tiny_summarizer(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "spiece.model").write_bytes(b"\x0a\x0e")
    with pytest.raises(ModelUnavailable, match="install sentencepiece and protobuf"):
        load(str(tmp_path))


def test_of_nothing_there_is_none(tiny: Path) -> None:
    assert load(str(tiny))([]) == []


def _letters(texts: list[str]) -> list[int]:
    return [len(text) for text in texts]


@given(st.text(alphabet="ab .!\n", max_size=200), st.integers(1, 30))
def test_pieces_are_the_text_and_fit(text: str, limit: int) -> None:
    found = pieces(text, lambda texts: _letters(list(texts)), limit)
    assert "".join("".join(found).split()) == "".join(text.split())
    for piece in found:
        # the space between two parts is not counted
        assert len(piece.replace(" ", "")) <= limit
    assert all(piece.strip() for piece in found)


def test_sentences_stay_whole_where_they_fit() -> None:
    text = "One two. Three four. Five six."
    words = lambda texts: [len(one.split()) for one in texts]  # noqa: E731
    assert pieces(text, words, 4) == ("One two. Three four.", "Five six.")
    assert pieces(text, words, 2) == ("One two.", "Three four.", "Five six.")
    assert pieces("One two three four five.", words, 3) == ("One two", "three four five.")
