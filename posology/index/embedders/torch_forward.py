"""Forward passes with torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer

#: Padded tokens a batch on a CPU: small enough that the activations stay in the cache of the cores. On two
#: cores 8,000 is a third slower.
CPU_TOKENS = 2_048
#: padded tokens a batch on an accelerator, which small batches would leave idle
DEVICE_TOKENS = 65_536


class TorchForward:
    """A :class:`~posology.index.embedders.card.Forward` over all modules of a sentence-transformers model."""

    few_shapes = True
    depth = 0

    def __init__(self, model: SentenceTransformer) -> None:
        self.model = model
        self._device = model.device
        self.budget = CPU_TOKENS if self._device.type == "cpu" else DEVICE_TOKENS
        arithmetic = str(next(model.parameters()).dtype).removeprefix("torch.")
        self.describes = f"torch {arithmetic} on {self._device.type}"

    def __call__(
        self, ids: NDArray[np.int64], mask: NDArray[np.int64], prompt_tokens: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """See :class:`~posology.index.embedders.card.Forward`."""
        features: dict[str, torch.Tensor | int] = {
            "input_ids": torch.from_numpy(ids).to(self._device),
            "attention_mask": torch.from_numpy(mask).to(self._device),
        }
        if prompt_tokens:
            features["prompt_length"] = prompt_tokens
        with torch.inference_mode():
            output = self.model(features)
            pooled, tokens = output["sentence_embedding"], output["token_embeddings"]
            return pooled.float().cpu().numpy(), tokens.float().cpu().numpy()

    def layers(
        self, ids: NDArray[np.int64], mask: NDArray[np.int64], prompt_tokens: int
    ) -> tuple[NDArray[np.float32], list[NDArray[np.float32]]]:
        """Return the last layer alone."""
        pooled, tokens = self(ids, mask, prompt_tokens)
        return pooled, [tokens]
