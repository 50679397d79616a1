from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.text.quoting.nearly import MIN_WORDS, nearest

TEXT = (
    "Methods were as planned. Aspirin did not reduce the risk of preeclampsia (relative risk 0.76, 95% CI 0.60 to 0.95) in "
    "1,776 women at high risk. Adverse events were rare."
)
RESULT = TEXT[25 : TEXT.index("Adverse") - 1]


@pytest.mark.parametrize(
    ("quote", "differences"),
    [
        # what turns a meaning is seen
        (
            "Aspirin reduced the risk of preeclampsia (relative risk 0.76; 95 % CI 0.62 to 0.95).",
            [("reduced", "did not reduce"), ("0.62", "0.60")],
        ),
        ("Aspirin did reduce the risk of preeclampsia", [("", "not")]),
        ("Aspirin did not reduce the risk of eclampsia", [("eclampsia", "preeclampsia")]),
        ("and aspirin did not reduce the risk of preeclampsia", [("and", "")]),
        # case, marks and spaces alone
        ("aspirin did NOT reduce the risk of preeclampsia ( relative risk 0.76 )", []),
    ],
)
def test_the_sentence_and_what_differs(quote: str, differences: list[tuple[str, str]]) -> None:
    found = nearest(quote, TEXT)
    assert found is not None
    assert TEXT[found.span.start : found.span.end] == RESULT
    assert [(one.quote, one.text) for one in found.differences] == differences


@pytest.mark.parametrize(
    "quote",
    [
        "Statins lowered mortality in older men after a stroke",
        # the same words in another order say something else
        "preeclampsia of risk the reduce not did women aspirin",
        # too few words to tell
        "Adverse events were",
        "",
        "…",
    ],
)
def test_what_is_not_near(quote: str) -> None:
    assert nearest(quote, TEXT) is None


@given(st.lists(st.sampled_from("abcdefgh"), min_size=MIN_WORDS, max_size=40), st.data())
def test_a_run_of_the_words_of_a_text_is_near_without_a_difference(
    words: list[str], data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(words) - MIN_WORDS))
    size = data.draw(st.integers(MIN_WORDS, len(words) - start))
    found = nearest(" ".join(words[start : start + size]), " ".join(words))
    assert found is not None
    assert (found.share, found.differences) == (1, ())


@given(st.text(), st.text())
def test_any_texts_are_compared(quote: str, text: str) -> None:
    found = nearest(quote, text)
    assert found is None or 0 <= found.span.start < found.span.end <= len(text)
