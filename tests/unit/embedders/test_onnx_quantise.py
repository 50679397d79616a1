"""Products in integers: near enough whatever the scales of channels, and of products alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from posology.index.embedders.models import has_dot_products
from posology.index.embedders.onnx.forward import open_session
from posology.index.embedders.onnx.quantisation import Span, observe, quantise, smoothing

#: bits of a weight with which this processor's products do not saturate
BITS = [7, 8] if has_dot_products() else [7]


def graph(weights: NDArray[np.float32], bias: NDArray[np.float32], *, left: bool) -> bytes:
    """A product of the activation ``x`` and a matrix, a bias on either side, and a second use of the matrix."""
    from onnx import TensorProto, helper, numpy_helper

    order = ["bias", "product"] if left else ["product", "bias"]
    nodes = [
        helper.make_node("Cast", ["input_ids"], ["cast"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["cast", "scale"], ["x"]),
        helper.make_node("MatMul", ["x", "weights"], ["product"]),
        helper.make_node("Add", order, ["y"]),
    ]
    made = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info(n, TensorProto.INT64, ["rows", "width", len(weights)])
            for n in ("input_ids",)
        ]
        + [helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["rows", "width"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [
            numpy_helper.from_array(np.array(0.01, dtype=np.float32), "scale"),
            numpy_helper.from_array(weights, "weights"),
            numpy_helper.from_array(bias, "bias"),
        ],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    written: bytes = model.SerializeToString()
    return written


def run(model: bytes, feed: dict[str, Any]) -> NDArray[np.float32]:
    session = open_session(model, threads=1)
    takes = {i.name for i in session.get_inputs()}
    found: NDArray[np.float32] = session.run(None, {k: v for k, v in feed.items() if k in takes})[0]
    return found


@given(
    seed=st.integers(0, 10_000),
    channels=st.integers(1, 40),
    outputs=st.integers(1, 40),
    outlier=st.sampled_from([1, 50]),
    bits=st.sampled_from(BITS),
    left=st.booleans(),
)
# two products of eight bits each come near to what sixteen bits hold
@example(seed=0, channels=2, outputs=2, outlier=1, bits=BITS[-1], left=False)
def test_integers_are_near(
    seed: int, channels: int, outputs: int, outlier: int, bits: int, left: bool
) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(channels, outputs)).astype(np.float32)
    bias = rng.normal(size=outputs).astype(np.float32)
    ids = rng.integers(-100, 100, (2, 5, channels))
    ids[..., 0] *= outlier
    feed = {"input_ids": ids, "attention_mask": np.ones((2, 5), dtype=np.int64)}
    exact = graph(weights, bias, left=left)
    small = quantise(exact, observe(exact, [feed]), bits=bits)
    a, b = run(exact, feed), run(small, feed)
    # the error of a sum grows as the length of what is summed
    size = np.linalg.norm(ids * 0.01, axis=-1).max() * np.linalg.norm(weights, axis=0).max()
    assert np.abs(a - b).max() <= size * (0.05 if bits == 8 else 0.08)


def test_a_channel_that_is_large_for_every_text_costs_the_others_no_precision() -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(32, 16)).astype(np.float32)
    ids = rng.integers(-100, 100, (4, 8, 32))
    ids[..., 3] += 20_000
    feed = {"input_ids": ids, "attention_mask": np.ones((4, 8), dtype=np.int64)}
    exact = graph(weights, np.zeros(16, dtype=np.float32), left=False)
    spans = observe(exact, [feed])
    a, b = run(exact, feed), run(quantise(exact, spans, bits=BITS[-1]), feed)
    # one scale for all channels would have a step of 200 / 255, the others' whole range is 2
    assert np.abs(a - b).max() < 5


def test_padding_is_not_observed() -> None:
    weights = np.ones((1, 1), dtype=np.float32)
    exact = graph(weights, np.zeros(1, dtype=np.float32), left=True)
    ids = np.array([[[100], [99_999]]])
    (span,) = observe(exact, [{"input_ids": ids, "attention_mask": np.array([[1, 0]])}]).values()
    assert float(span.low[0]) == 0.0
    assert float(span.high[0]) == pytest.approx(1.0)


@given(
    st.lists(
        st.tuples(st.floats(-100, 0, width=32), st.floats(0, 100, width=32)), min_size=1, max_size=9
    )
)
def test_factors_are_above_zero(ranges: list[tuple[float, float]]) -> None:
    low, high = np.array(ranges, dtype=np.float32).T
    factors = smoothing(Span(low=low, high=high), [np.zeros((len(low), 3), dtype=np.float32)])
    assert np.isfinite(factors).all()
    assert (factors > 0).all()
