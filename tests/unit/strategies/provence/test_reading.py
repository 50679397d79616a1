from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.text.sentences import split
from strategies.compression.provence.checkpoint import load
from strategies.compression.provence.windows import Reading
from tests.support.compression import contexts
from tests.unit.strategies.provence.conftest import LONG

QUESTION = "Is aspirin safe?"


@pytest.fixture(scope="module")
def reading(reranker: Path) -> Reading:
    return Reading.of(load(str(reranker)))


def test_a_short_pair_is_read_as_the_tokenizer_makes_it(reading: Reading, reranker: Path) -> None:
    tokenizer = load(str(reranker)).tokenizer
    text = reading.text("Aspirin. ", "The dose. Not 5 mg.", split("The dose. Not 5 mg."))
    (window,) = reading.windows(QUESTION, text)
    pair = tokenizer(QUESTION, "Aspirin. The dose. Not 5 mg.", return_token_type_ids=True)
    assert list(window.ids) == pair["input_ids"]
    assert list(window.segments) == pair["token_type_ids"]
    shown = window.ids[window.first : window.first + window.owned]
    assert shown == text.ids
    assert tokenizer.convert_ids_to_tokens(shown)[:3] == ["aspirin", ".", "the"]
    assert text.sentence.tolist() == [-1, -1, 0, 0, 0, 1, 1, 1, 1]


@given(texts=contexts, title=st.sampled_from(("", "Aspirin in adults. ")))
def test_windows_own_each_token_once_and_fit(
    reading: Reading, texts: list[str], title: str
) -> None:
    passage = " ".join(texts)
    text = reading.text(title, passage, split(passage))
    windows = reading.windows(QUESTION, text)
    owned = [i for w in windows for i in w.ids[w.first : w.first + w.owned]]
    assert tuple(owned) == text.ids
    assert max(len(w.ids) for w in windows) <= reading.limit
    assert all(w.ids[: w.first] == windows[0].ids[: w.first] for w in windows)
    assert (np.diff(text.sentence) >= 0).all()
    assert set(text.sentence.tolist()) - {-1} == set(range(len(split(passage))))


def test_a_long_passage_goes_on_with_a_whole_sentence(reading: Reading) -> None:
    text = reading.text("", LONG, split(LONG))
    windows = reading.windows(QUESTION, text)
    assert len(windows) > 1
    end = 0
    for window in windows[:-1]:
        end += window.owned
        assert text.sentence[end] > text.sentence[end - 1]


def test_the_passage_is_cut_not_the_question(reading: Reading) -> None:
    question = "Is aspirin safe in adults not in stroke?"
    text = reading.text("", LONG, split(LONG))
    (probe,) = reading.windows(question, reading.text("", "", ()))
    for window in reading.windows(question, text):
        assert window.ids[: window.first] == probe.ids[: window.first]


def test_a_question_that_fills_the_window_leaves_some_of_it(reading: Reading) -> None:
    text = reading.text("", LONG, split(LONG))
    windows = reading.windows("aspirin " * 500, text)
    assert max(len(w.ids) for w in windows) <= reading.limit
    assert sum(w.owned for w in windows) == len(text.ids)
    assert max(len(w.ids) - w.first for w in windows) >= reading.limit // 2 - 2
    empty = reading.windows("x", reading.text("", "", ()))
    assert [w.owned for w in empty] == [0]


def test_inputs_are_filled_up(reading: Reading) -> None:
    text = reading.text("", LONG, split(LONG))
    windows = reading.windows(QUESTION, text)
    inputs = reading.tensors(windows, width=64)
    assert inputs["input_ids"].shape == (len(windows), 64)
    assert inputs["attention_mask"].sum(1).tolist() == [len(w.ids) for w in windows]
    assert not inputs["input_ids"][inputs["attention_mask"] == 0].any()


def _pieces() -> Any:
    """A tokenizer that marks blanks in front of words, as DeBERTa-v3's does."""
    from tokenizers import Tokenizer, pre_tokenizers, processors
    from tokenizers.models import Unigram
    from transformers import PreTrainedTokenizerFast

    letters = [chr(c) for c in range(33, 127)]
    words = ["▁The", "▁dose", "▁was", "▁", "▁Aspirin", "▁in", "▁adults"]
    vocab = [("[PAD]", 0.0), ("[CLS]", 0.0), ("[SEP]", 0.0), ("[UNK]", 0.0)]
    vocab += [(word, -1.0) for word in words] + [(letter, -5.0) for letter in letters]
    backend = Tokenizer(Unigram(vocab, unk_id=3))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=backend, pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", unk_token="[UNK]"
    )  # fmt: skip


def test_pieces_that_begin_with_a_blank_are_of_the_sentence_after_it() -> None:
    tokenizer = _pieces()
    reading = Reading(tokenizer, limit=512, segments=False, pad=0)
    passage = "The dose was 5. The dose. ½ mg in adults."
    sentences = split(passage)
    text = reading.text("Aspirin in adults. ", passage, sentences)
    shown = tokenizer.convert_ids_to_tokens(text.ids)
    starts = [shown[i] for i in np.flatnonzero(np.diff(text.sentence)) + 1]
    assert text.sentence[0] == -1
    assert starts == ["▁The", "▁The", "▁"][: len(sentences)]
    assert shown[int((text.sentence == -1).sum()) - 1] == "."
    assert len(starts) == len(sentences)
    (window,) = reading.windows("Was it?", text)
    pair = tokenizer("Was it?", "Aspirin in adults. " + passage)["input_ids"]
    assert list(window.ids) == pair
