from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies.compression.summarization.rate import Features, WordEntropy, fit

features = st.builds(
    lambda n, m: Features(length=n, mean=m, total=n * m),
    st.integers(5, 400),
    st.floats(1, 15),
)
sets = st.lists(st.tuples(features, st.floats(0, 1)), min_size=2, max_size=30)


def test_rare_words_tell_more() -> None:
    entropy = WordEntropy(["the dose the risk", "the Dose"])
    assert entropy.of("the") == 1.0
    assert entropy.of("dose") == pytest.approx(np.log2(3))
    assert entropy.of("risk") < entropy.of("unheard")
    found = entropy.features("The risk, the dose.")
    assert found.length == 4
    assert found.total == pytest.approx(2 + np.log2(6) + np.log2(3))
    assert found.mean == found.total / 4
    assert entropy.features("…").row == (0.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="no word"):
        WordEntropy(["…", ""])


def test_it_finds_the_plane_that_there_is() -> None:
    rng = np.random.default_rng(0)
    many = [
        Features(length=int(n), mean=float(m), total=float(t))
        for n, m, t in zip(
            rng.integers(20, 300, 200), rng.uniform(4, 9, 200), rng.uniform(100, 2_000, 200), strict=True
        )
    ]  # fmt: skip
    rates = [0.2 + 0.0005 * f.length + 0.03 * f.mean - 0.00005 * f.total for f in many]
    model = fit(many, rates)
    found = model.test(many, rates)
    assert found.r2 == pytest.approx(1)
    assert found.rmse < 1e-9
    assert found.correlation == pytest.approx(1)
    assert model(many[0]) == pytest.approx(rates[0])
    noisy = fit(many, rng.permutation(rates).tolist())
    assert noisy.test(many, rates).r2 < 0.2


@given(sets)
def test_it_predicts_no_worse_than_the_mean_where_it_was_fitted(
    pairs: list[tuple[Features, float]],
) -> None:
    known, rates = [a for a, _ in pairs], [b for _, b in pairs]
    model = fit(known, rates)
    found = model.test(known, rates)
    assert found.rmse <= np.std(rates) + 1e-6
    assert found.r2 >= -1e-6
    assert found.correlation is None or -1 - 1e-9 <= found.correlation <= 1 + 1e-9
    assert all(0 <= model(one) <= 1 for one in known)


@given(sets)
def test_no_other_plane_fits_better(pairs: list[tuple[Features, float]]) -> None:
    known, rates = [a for a, _ in pairs], [b for _, b in pairs]
    model = fit(known, rates)
    best = model.test(known, rates).rmse
    rng = np.random.default_rng(0)
    table = np.array([one.row for one in known])
    table = (table - model.centre) / model.scale
    for step in rng.normal(0, 0.01, (20, 4)):
        said = model.intercept + step[3] + table @ (np.array(model.weights) + step[:3])
        assert np.sqrt(((np.array(rates) - said) ** 2).mean()) >= best - 1e-6


def test_each_passage_has_its_rate() -> None:
    one = Features(length=1, mean=1.0, total=1.0)
    with pytest.raises(ValueError, match="one for each"):
        fit([one], [0.1, 0.2])
    with pytest.raises(ValueError, match="one for each"):
        fit([], [])
