"""Eight-bit integers for the products of an exported encoder, with scales that no input changes.

Weights have a scale a column. Activations have one scale a tensor, fixed once by what the model computes of
some texts, so that a text's vectors hang neither on what else is in its batch nor on padding: dynamic
quantisation takes the scale from the whole batch. Channels that are large for every text would take the
others' precision; they are divided by a factor that the weights are multiplied with, as in SmoothQuant
(Xiao et al., ICML 2023, equation 4). Only graphs are rewritten here; nothing knows a tokenizer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from posology.index.embedders.onnx.forward import open_session

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: SmoothQuant's migration strength: how much of the difficulty goes from activations to weights
ALPHA = 0.75
#: ONNX Runtime's own operators
DOMAIN = "com.microsoft"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Span:
    """Ranges of an activation's channels over all texts, shape ``(channels,)`` each, 0 included."""

    low: NDArray[np.float32]
    high: NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Product:
    """An activation times a constant matrix, and the bias that is added to it."""

    node: Any
    #: the node that adds the bias
    add: Any
    bias: str | None


def observe(model: bytes, feeds: Iterable[Mapping[str, NDArray[Any]]]) -> dict[str, Span]:
    """Measure the inputs of all products with constants, by the activation's name.

    Args:
        model: the exported encoder, float32.
        feeds: batches, each with an ``attention_mask``; padding is not counted.
    """
    import onnx

    graph = onnx.load_from_string(model)
    names = list(dict.fromkeys(p.node.input[0] for p in _products(graph)))
    for name in names:
        graph.graph.output.append(
            onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
        )
    session = open_session(graph.SerializeToString())
    takes = {given.name for given in session.get_inputs()}
    spans: dict[str, Span] = {}
    for feed in feeds:
        own = feed["attention_mask"].astype(bool)
        given = {name: value for name, value in feed.items() if name in takes}
        for name, value in zip(names, session.run(names, given), strict=True):
            rows = value[own]
            before = spans.get(name)
            low, high = np.minimum(rows.min(axis=0), 0), np.maximum(rows.max(axis=0), 0)
            if before is not None:
                low, high = np.minimum(low, before.low), np.maximum(high, before.high)
            spans[name] = Span(low=low, high=high)
    return spans


def quantise(model: bytes, spans: Mapping[str, Span], *, bits: int = 8) -> bytes:
    """Return the same encoder with its products in integers.

    Args:
        model: the exported encoder, float32.
        spans: of what goes into its products, as :func:`observe` finds them.
        bits: of a weight: 8, or 7 for processors whose 8-bit products saturate.
    """
    import onnx

    made = onnx.load_from_string(model)
    graph = made.graph
    constants = {i.name: onnx.numpy_helper.to_array(i) for i in graph.initializer}
    products = _products(made)
    inputs: dict[str, list[_Product]] = {}
    for product in products:
        inputs.setdefault(product.node.input[0], []).append(product)
    at = {product.node.name or product.node.output[0]: product for product in products}
    added = {product.add.output[0] for product in products if product.add is not None}
    scales: dict[str, NDArray[np.float32]] = {}
    nodes = []
    for node in graph.node:
        name = node.name or node.output[0]
        if name in at:
            given = node.input[0]
            if given not in scales:
                weights = [constants[p.node.input[1]] for p in inputs[given]]
                scales[given] = smoothing(spans[given], weights)
                nodes += _to_integers(graph, given, spans[given], scales[given])
            nodes.append(_in_integers(graph, at[name], constants, scales[given], bits))
        elif node.output[0] not in added:
            nodes.append(node)
    used = {name for node in nodes for name in node.input}
    kept = [i for i in graph.initializer if i.name in used]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(kept)
    if all(opset.domain != DOMAIN for opset in made.opset_import):
        made.opset_import.append(onnx.helper.make_opsetid(DOMAIN, 1))
    written: bytes = made.SerializeToString()
    return written


def smoothing(span: Span, weights: Iterable[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Return the divisor of each channel of an activation, shape ``(channels,)``, > 0.

    Args:
        span: of the activation.
        weights: the matrices that it is multiplied with, shape ``(channels, outputs)`` each.
    """
    activation = np.maximum(np.maximum(-span.low, span.high), 1e-6)
    weight = np.maximum(np.max([np.abs(w).max(axis=1) for w in weights], axis=0), 1e-6)
    factors: NDArray[np.float32] = (activation**ALPHA / weight ** (1 - ALPHA)).astype(np.float32)
    return factors


def _products(model: Any) -> list[_Product]:
    constants = {i.name: i for i in model.graph.initializer}
    readers: dict[str, list[Any]] = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    products = []
    for node in model.graph.node:
        if node.op_type != "MatMul" or node.input[0] in constants:
            continue
        matrix = constants.get(node.input[1])
        if matrix is None or len(matrix.dims) != 2:
            continue
        after = readers.get(node.output[0], [])
        add, bias = None, None
        if len(after) == 1 and after[0].op_type == "Add":
            others = [name for name in after[0].input if name != node.output[0]]
            if len(others) == 1 and others[0] in constants and len(constants[others[0]].dims) == 1:
                add, bias = after[0], others[0]
        products.append(_Product(node=node, add=add, bias=bias))
    return products


def _to_integers(graph: Any, name: str, span: Span, factors: NDArray[np.float32]) -> list[Any]:
    """Return nodes that quantise an activation to bytes."""
    from onnx import helper

    low = float((span.low / factors).min())
    high = float((span.high / factors).max())
    scale = np.float32(max(high - low, 1e-6) / 255)
    zero = np.uint8(np.clip(round(-low / float(scale)), 0, 255))
    inverse = _constant(graph, f"{name}:inverse", (1 / factors).astype(np.float32))
    step = _constant(graph, f"{name}:scale", np.array(scale, dtype=np.float32))
    offset = _constant(graph, f"{name}:zero", np.array(zero, dtype=np.uint8))
    return [
        helper.make_node("Mul", [name, inverse], [f"{name}:smooth"]),
        helper.make_node("QuantizeLinear", [f"{name}:smooth", step, offset], [f"{name}:bytes"]),
    ]


def _in_integers(
    graph: Any,
    product: _Product,
    constants: Mapping[str, NDArray[np.float32]],
    factors: NDArray[np.float32],
    bits: int,
) -> Any:
    from onnx import helper

    given, matrix = product.node.input
    most = 2 ** (bits - 1) - 1
    weights = constants[matrix] * factors[:, None]
    steps = np.maximum(np.abs(weights).max(axis=0), 1e-12) / most
    whole = np.clip(np.rint(weights / steps), -most, most).astype(np.int8)
    # named by the product: two may share a matrix and not the factors
    own = product.node.output[0]
    inputs = [
        f"{given}:bytes",
        _constant(graph, f"{own}:weights", whole),
        f"{given}:scale",
        _constant(graph, f"{own}:steps", steps.astype(np.float32)),
        f"{given}:zero",
        _constant(graph, f"{own}:zeros", np.zeros(len(steps), dtype=np.int8)),
    ]
    if product.bias is not None:
        inputs.append(product.bias)
    output = (product.node if product.add is None else product.add).output[0]
    return helper.make_node("MatMulIntegerToFloat", inputs, [output], domain=DOMAIN)


def _constant(graph: Any, name: str, value: NDArray[Any]) -> str:
    from onnx import numpy_helper

    graph.initializer.append(numpy_helper.from_array(value, name))
    return name
