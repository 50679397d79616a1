"""One encoder with two heads, in one pass: the passage's score, and which of the tokens to keep.

It imports torch and transformers: import it inside functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

#: what a token's two logits stand for
DROP, KEEP = 0, 1


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Seen:
    """What the heads say of n inputs of w tokens."""

    #: the larger, the better the passage answers, shape ``(n,)``
    scores: Tensor
    #: of each token that it is dropped, and that it is kept, shape ``(n, w, 2)``
    logits: Tensor


class TwoHeads(nn.Module):
    """A re-ranker with a second head that labels tokens (Provence, section 3, *Unifying compression and reranking*).

    The re-ranker is any sequence classifier of transformers, whose first label is the score; its encoder's
    last states are read on their way to it. One pass at a time: it is not safe for several threads.
    """

    def __init__(self, reranker: Any, token_head: nn.Linear | None = None) -> None:
        """Put both heads on one encoder.

        Args:
            reranker: of ``AutoModelForSequenceClassification``.
            token_head: from the encoder's states to :data:`DROP` and :data:`KEEP`; ``None``: a fresh one.
        """
        super().__init__()
        config = reranker.config
        self.reranker = reranker
        if token_head is None:
            token_head = nn.Linear(config.hidden_size, 2)
            nn.init.normal_(token_head.weight, std=getattr(config, "initializer_range", 0.02))
            nn.init.zeros_(token_head.bias)
        self.token_head = token_head
        self.dropout = nn.Dropout(_dropout(config))

    def forward(self, inputs: Mapping[str, Tensor]) -> Seen:
        """Read inputs of one width, each a question with a passage.

        Args:
            inputs: ``input_ids``, ``attention_mask`` and, for models that know segments, ``token_type_ids``,
                shape ``(n, w)`` each.
        """
        caught: list[Tensor] = []
        # heads differ in what they make of the states, so these are caught where every model has them
        handle = self.reranker.base_model.register_forward_hook(
            lambda _module, _inputs, output: caught.append(output[0])
        )
        try:
            labels = self.reranker(**inputs).logits
        finally:
            handle.remove()
        return Seen(scores=labels[:, 0], logits=self.token_head(self.dropout(caught[0])))

    def tokens_kept(self, inputs: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Scores, shape ``(n,)``, and how likely each token is kept, shape ``(n, w)``, without gradients."""
        with torch.inference_mode():
            seen = self(inputs)
            return seen.scores.float(), seen.logits.float().softmax(-1)[..., KEEP]


def _dropout(config: Any) -> float:
    for name in ("cls_dropout", "classifier_dropout", "hidden_dropout_prob"):
        rate = getattr(config, name, None)
        if rate is not None:
            return float(rate)
    return 0.1
