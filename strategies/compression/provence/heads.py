"""An encoder with two heads in one pass: the passage's score, and the tokens to keep.

This module imports torch and transformers. Import it inside functions only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

#: places of a token's two logits
DROP, KEEP = 0, 1


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Seen:
    """Output of both heads for n inputs of w tokens."""

    #: score of each passage, higher is better, shape ``(n,)``
    scores: Tensor
    #: logits of dropping and keeping each token, shape ``(n, w, 2)``
    logits: Tensor


class TwoHeads(nn.Module):
    """A re-ranker with a second head that labels tokens (Provence, section 3, *Unifying compression and reranking*).

    The re-ranker is any sequence classifier of transformers; its first label is the score. The token head reads the
    last states of its encoder. Not thread-safe.
    """

    def __init__(self, reranker: Any) -> None:
        """Add a new token head to a re-ranker, from its encoder's states to :data:`DROP` and :data:`KEEP`.

        Args:
            reranker: of ``AutoModelForSequenceClassification``.
        """
        super().__init__()
        config = reranker.config
        self.reranker = reranker
        self.token_head = nn.Linear(config.hidden_size, 2)
        nn.init.normal_(self.token_head.weight, std=getattr(config, "initializer_range", 0.02))
        nn.init.zeros_(self.token_head.bias)
        self.dropout = nn.Dropout(_dropout(config))

    def forward(self, inputs: Mapping[str, Tensor]) -> Seen:
        """Run both heads on inputs of equal width, each a question with a passage.

        Args:
            inputs: ``input_ids``, ``attention_mask`` and, for models with segment ids, ``token_type_ids``,
                shape ``(n, w)`` each.
        """
        caught: list[Tensor] = []
        # a hook on the encoder: its states are available in every architecture
        handle = self.reranker.base_model.register_forward_hook(
            lambda _module, _inputs, output: caught.append(output[0])
        )
        try:
            labels = self.reranker(**inputs).logits
        finally:
            handle.remove()
        return Seen(scores=labels[:, 0], logits=self.token_head(self.dropout(caught[0])))

    def tokens_kept(self, inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return scores, shape ``(n,)``, and each token's probability of being kept, shape ``(n, w)``; no gradients."""
        with torch.inference_mode():
            seen = self(inputs)
            return seen.scores.float(), seen.logits.float().softmax(-1)[..., KEEP]


def _dropout(config: Any) -> float:
    for name in ("cls_dropout", "classifier_dropout", "hidden_dropout_prob"):
        rate = getattr(config, name, None)
        if rate is not None:
            return float(rate)
    return 0.1
