"""The compressor over tiny models of random weights: what they write is nonsense, what is done with it is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from posology.errors import ConfigurationError, ModelUnavailable
from posology.types import Passage
from prompts.fence import SUMMARY, fence
from strategies.compression.checked import check
from strategies.compression.parts import Parts
from strategies.compression.summarization.compressor import NAME, Summarization, make
from strategies.compression.summarization.model import load
from tests.support.compression import WRITTEN, compressible

TEXTS = tuple(f"{text} The dose was 5 mg a day for adults." for text in WRITTEN[:3])


class Kept:
    """A :class:`~posology.seams.Memory` that can be looked into."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.puts = 0

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        return {key: self.values[key] for key in keys if key in self.values}

    def put(self, values: Mapping[bytes, bytes]) -> None:
        self.puts += len(values)
        self.values = {**values, **self.values}


def test_a_summary_stands_in_place_of_a_passage_and_is_labelled(
    by_share: dict[float, Path],
) -> None:
    compressor = Summarization([str(by_share[0.3])])
    retrieval = compressible(TEXTS)
    compressed = compressor(retrieval, 0.3)
    assert not compressed.extractive, (
        "random weights say something, and seldom as long as their source"
    )
    assert compressed.compressor == NAME
    summaries = [e for e in compressed.excerpts if e.summary is not None]
    for excerpt in summaries:
        assert excerpt.sentences == ()
        assert len(excerpt.summary or "") < len(excerpt.passage.text)
    assert fence(compressed.excerpts).text.count(SUMMARY) == len(summaries)


def test_the_model_of_the_nearest_share_writes(by_share: dict[float, Path]) -> None:
    compressor = Summarization([str(by_share[share]) for share in (0.7, 0.3, 0.5)])
    retrieval = compressible(TEXTS)
    alone = {share: Summarization([str(folder)]) for share, folder in by_share.items()}
    for keep, share in ((0.0, 0.3), (0.3, 0.3), (0.4, 0.3), (0.41, 0.5), (0.6, 0.5), (0.99, 0.7)):
        assert compressor(retrieval, keep) == alone[share](retrieval, keep), keep
        assert compressor.expected_ratio(keep) == share
    assert compressor(retrieval, None) == alone[0.7](retrieval, None), "the first that is named"
    assert alone[0.3](retrieval, None) != alone[0.7](retrieval, None)


def test_nothing_is_summarised_where_all_is_to_be_left(by_share: dict[float, Path]) -> None:
    memory = Kept()
    compressor = Summarization([str(by_share[0.3])], memory=memory)
    compressed = compressor(compressible(TEXTS), 1.0)
    assert compressed.extractive
    assert compressed.kept == compressed.sentences > 0
    assert not memory.values
    assert compressor.expected_ratio(1.0) == 1
    assert compressor.seconds(compressible(TEXTS), 1.0) == 0


def test_a_summary_is_made_once(by_share: dict[float, Path]) -> None:
    memory = Kept()
    models = [str(by_share[0.5])]
    compressor = Summarization(models, memory=memory)
    before = compressor.seconds(compressible(TEXTS), 0.5)
    first = compressor(compressible((*TEXTS, TEXTS[0])), 0.5)
    assert memory.puts == len(TEXTS), "two passages of the same text are one"
    assert before > 0
    assert compressor.seconds(compressible(TEXTS), 0.5) == 0
    again = Summarization(models, memory=memory)
    assert again(compressible((*TEXTS, TEXTS[0])), 0.5) == first
    assert memory.puts == len(TEXTS)
    Summarization([str(by_share[0.3])], memory=memory)(compressible(TEXTS), 0.3)
    assert memory.puts == 2 * len(TEXTS), "another model's are its own"


def _remembering(folder: Path, said: Mapping[str, str]) -> Summarization:
    """A compressor that has written these summaries before: text → summary."""
    memory = Kept()
    compressor = Summarization([str(folder)], memory=memory)
    compressor(compressible(list(said)), 0.5)
    keys = dict(zip(said, memory.values, strict=True))
    memory.values = {keys[text]: summary.encode() for text, summary in said.items()}
    return compressor


LONG = "Aspirin lowered mortality by 12% in 40 adults. It did not raise the risk of stroke in adults. The dose was 81 mg."


@pytest.mark.parametrize(
    ("summary", "left", "dropped"),
    [
        ("Aspirin lowered mortality by 12%.", "Aspirin lowered mortality by 12%.", 0),
        ("Aspirin lowered mortality by 21%. It was given.", "It was given.", 1),
        ("The dose was 81 g.", None, 1),
        ("It did raise the risk of stroke in adults.", None, 1),
        ("Warfarin lowered mortality.", None, 1),
        ("", None, 0),
    ],
)
def test_what_the_passage_does_not_say_is_not_shown(
    tiny: Path, summary: str, left: str | None, dropped: int
) -> None:
    compressed = _remembering(tiny, {LONG: summary})(compressible([LONG]), 0.5)
    assert [e.summary for e in compressed.excerpts] == ([left] if left else [])
    assert compressed.remarks == (
        (
            f"{dropped} sentences of summaries were removed because the passages do not support them.",
        )
        if dropped
        else ()
    )


def test_a_passage_that_is_no_longer_than_its_summary_is_shown_itself(tiny: Path) -> None:
    for summary in (LONG + " And so on.", "a " * 40):
        compressed = _remembering(tiny, {LONG: summary})(compressible([LONG]), 0.5)
        (excerpt,) = compressed.excerpts
        assert excerpt.summary is None
        assert len(excerpt.sentences) == compressed.kept == compressed.sentences == 3


def test_what_is_checked_names_what_is_added() -> None:
    passage = Passage(id="t:1", text=LONG, title="Aspirin and clopidogrel")
    summary = "Aspirin helped. Clopidogrel helped. Atorvastatin helped. 90 adults were asked."
    found = check(summary, passage)
    assert found.text == "Aspirin helped. Clopidogrel helped."
    assert found.added == ("Atorvastatin helped.", "90 adults were asked.")
    assert check(LONG, passage).added == ()
    glad = Passage(id="t:2", text="Aspirin lowered mortality in adults.")
    assert check("It helped adults. It did not help children.", glad).added == (
        "It did not help children.",
    )


def test_what_is_missing_is_said(tmp_path: Path, tiny: Path) -> None:
    with pytest.raises(ConfigurationError, match="posology compressor finetune"):
        make(Parts())
    with pytest.raises(ModelUnavailable, match="hf download"):
        make(Parts(models={NAME: "nobody/has-this"}))
    (tmp_path / "posology.json").write_text('{"kind": "provence"}', encoding="utf-8")
    with pytest.raises(ModelUnavailable, match=r"posology\.json"):
        make(Parts(models={NAME: str(tmp_path)}))
    (tmp_path / "posology.json").unlink()
    with pytest.raises(ModelUnavailable, match="sequence-to-sequence"):
        load(str(tmp_path))
    made = make(Parts(models={NAME: f"{tiny}:{tiny}"}, memory=Kept))
    assert made.expected_ratio(None) == 0.5
