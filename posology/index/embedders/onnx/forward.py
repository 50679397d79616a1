"""Forward passes with ONNX Runtime, without torch."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from posology.devices import cores
from posology.index.embedders.onnx.layers import layers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from posology.index.embedders.card import Card

#: supported poolings
POOLINGS = ("mean", "cls")
#: padded tokens a batch
TOKENS = 2_048


class NotExported(Exception):
    """An encoder without a faithful ONNX model.

    Args:
        reason: the reason, for messages.
        known: whether it was found out before.
    """

    def __init__(self, reason: str, *, known: bool = False) -> None:
        super().__init__(reason)
        self.known = known


def pools(pooling: str) -> bool:
    """Return whether a model of this pooling can do without torch."""
    return pooling in POOLINGS


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class WordVectors:
    """The vectors of words, looked up by vocabulary ids."""

    numbers: NDArray[np.int8]
    scales: NDArray[np.float32]

    def __getitem__(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of ids, shape ``ids.shape + (dim,)``."""
        found: NDArray[np.float32] = self.numbers[ids] * self.scales[ids]
        return found


class OnnxForward:
    """A :class:`~posology.index.embedders.card.Forward` over an exported encoder.

    Args:
        model: the file, or its content. It takes ``input_ids``, ``attention_mask`` and perhaps
            ``token_type_ids``, int64, and gives the token vectors first.
        card: of the model; its pooling is one of :data:`POOLINGS`.
        threads: of one pass; ``None``: one a core.
        arithmetic: of the model, for people.
        words: vectors of words, of a model that takes ``embeddings`` in place of ``input_ids``.
    """

    few_shapes = False
    budget = TOKENS

    def __init__(
        self,
        model: Path | bytes,
        card: Card,
        *,
        threads: int | None = None,
        arithmetic: str = "int8",
        words: WordVectors | None = None,
    ) -> None:
        self._words = words
        self._session = open_session(model, threads=threads)
        self._takes = {given.name for given in self._session.get_inputs()}
        self._gives = self._session.get_outputs()[0].name
        self._layers = layers_of(self._session)
        self.depth = len(self._layers)
        self._card = card
        self.describes = f"onnx {arithmetic} on cpu"

    def __call__(
        self, ids: NDArray[np.int64], mask: NDArray[np.int64], prompt_tokens: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """See :class:`~posology.index.embedders.card.Forward`."""
        (tokens,) = self._run([self._gives], ids, mask)
        return self._pool(tokens, mask, prompt_tokens), tokens

    def layers(
        self, ids: NDArray[np.int64], mask: NDArray[np.int64], prompt_tokens: int
    ) -> tuple[NDArray[np.float32], list[NDArray[np.float32]]]:
        """See :class:`~posology.index.embedders.card.Forward`."""
        found = self._run([*self._layers, self._gives], ids, mask)
        return self._pool(found[-1], mask, prompt_tokens), found

    def _run(
        self, outputs: list[str], ids: NDArray[np.int64], mask: NDArray[np.int64]
    ) -> list[NDArray[np.float32]]:
        feed: dict[str, Any] = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
        }
        if self._words is not None:
            feed["embeddings"] = self._words[ids]
        wanted = {name: value for name, value in feed.items() if name in self._takes}
        found: list[NDArray[np.float32]] = self._session.run(outputs, wanted)
        return found

    def _pool(
        self, tokens: NDArray[np.float32], mask: NDArray[np.int64], prompt_tokens: int
    ) -> NDArray[np.float32]:
        if self._card.pooling == "cls":
            return tokens[:, 0]
        counted = mask.astype(np.float32)
        if prompt_tokens and not self._card.pools_prompt:
            counted[:, :prompt_tokens] = 0
        # a product instead of a masked sum: it makes no copy of the token vectors
        sums = (counted[:, None, :] @ tokens)[:, 0]
        pooled: NDArray[np.float32] = sums / np.maximum(
            counted.sum(axis=1, keepdims=True), np.float32(1e-9)
        )
        return pooled


def open_session(model: Path | bytes, *, threads: int | None = None) -> Any:
    """Return an inference session on the CPU, whose idle threads sleep.

    ONNX Runtime sends events on each session to its maker, and keeps those that it could not send below the home
    folder, from 1.29 on. It does not here, unless ``ORT_DISABLE_TELEMETRY`` is set to something else.
    """
    # read once, when the library is loaded
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or cores()
    options.inter_op_num_threads = 1
    # spinning threads starve other processes on the same cores, see docs/concepts/encoding.md
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # a plan of memory is kept for every shape of a batch, and shapes are many
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    given = model if isinstance(model, bytes) else str(model)
    return onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])
