from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from posology.index.embedders.windows import Window, batches, cut


def test_a_text_that_fits_is_one_window() -> None:
    assert cut(3, 10, sentence_starts=[0, 4], capacity=10) == [
        Window(text=3, start=0, end=10, owned=10)
    ]


def test_an_empty_text_has_a_window() -> None:
    assert cut(0, 0, sentence_starts=[], capacity=5) == [Window(text=0, start=0, end=0, owned=0)]


def test_a_cut_sentence_is_read_whole_in_the_next_window() -> None:
    assert cut(0, 12, sentence_starts=[0, 6], capacity=8) == [
        Window(text=0, start=0, end=8, owned=6),
        Window(text=0, start=6, end=12, owned=12),
    ]


def test_a_sentence_longer_than_a_window_is_cut() -> None:
    windows = cut(0, 25, sentence_starts=[0, 2], capacity=8)
    assert [(w.start, w.owned) for w in windows] == [(0, 2), (2, 10), (10, 18), (18, 25)]


@settings(deadline=None)
@given(
    length=st.integers(0, 300),
    starts=st.lists(st.integers(0, 300), unique=True).map(sorted),
    capacity=st.integers(1, 40),
)
def test_every_token_is_owned_once(length: int, starts: list[int], capacity: int) -> None:
    windows = cut(0, length, sentence_starts=starts, capacity=capacity)
    assert [t for w in windows for t in range(w.start, w.owned)] == list(range(length))
    assert all(w.end - w.start <= capacity and w.owned <= w.end for w in windows)
    assert windows[0].end == min(length, capacity)


@settings(deadline=None)
@given(lengths=st.lists(st.integers(2, 256)), budget=st.integers(1, 5000))
def test_batches_hold_each_item_once_within_the_budget(lengths: list[int], budget: int) -> None:
    made = list(batches(lengths, budget=budget, limit=256))
    assert sorted(i for batch in made for i in batch.items) == list(range(len(lengths)))
    for batch in made:
        assert max(lengths[i] for i in batch.items) <= batch.width <= 256
        assert len(batch.items) <= batch.rows
        assert batch.rows == 1 or batch.rows * batch.width <= budget


def test_all_batches_have_few_shapes() -> None:
    rng = Random(0)
    runs = [[rng.randint(2, 256) for _ in range(rng.randint(1, 400))] for _ in range(300)]
    made = [b for lengths in runs for b in batches(lengths, budget=4096, limit=256)]
    widths = {b.width for b in made}
    assert len(widths) <= 16
    for width in widths:
        # the full size, and powers of two below it
        assert len({b.rows for b in made if b.width == width}) <= 11


def test_a_limit_between_the_steps_is_kept() -> None:
    (batch,) = batches([30, 31], budget=4096, limit=31)
    assert (batch.width, batch.rows, batch.items) == (31, 2, (1, 0))
