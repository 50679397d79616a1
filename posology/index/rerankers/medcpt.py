"""MedCPT's cross-encoder as a re-ranker (Jin et al. 2023), used as its model card publishes it.

It reads the question and an article, title and abstract as one text, as a pair of up to 512 tokens; its one
logit is the score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from posology.errors import ModelUnavailable
from posology.hub import digest
from posology.index.embedders.options import Options
from posology.index.embedders.pairs import Checkpoint, Reader, load_checkpoint
from posology.types import Retrieval

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

#: the published checkpoint
CROSS = "ncbi/MedCPT-Cross-Encoder"
#: maximum number of tokens by the model card, special ones included
LIMIT = 512


class MedCPTReranker:
    """:class:`~posology.seams.Reranker` with a model of one logit. Make it with :func:`load`.

    Thread-safe; threads take turns batch by batch.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._read = Reader(checkpoint, limit=LIMIT, head=_logit)
        #: with the digest of the weights
        self.name = f"medcpt-cross:{digest(checkpoint.folder)}:{self._read.limit}"

    def __call__(self, retrieval: Retrieval) -> NDArray[np.float32]:
        """Return one logit a passage, shape ``(len(retrieval.passages),)``; the larger the better."""
        from posology.index.embedders.sentence_transformer import heading

        asked = retrieval.query.text
        passages = [one.passage for one in retrieval.passages]
        scores = self._read([(asked, heading(one) + one.text) for one in passages], 1)
        flat: NDArray[np.float32] = scores[:, 0]
        return flat


def _logit(output: Any) -> torch.Tensor:
    logits: torch.Tensor = output.logits
    return logits


def load(model: str = "", options: Options | None = None) -> MedCPTReranker:
    """Load the cross-encoder. Blocking, and never over the network.

    Args:
        model: a folder, or a hub name whose files are in the local cache; empty: the published one.
        options: computation, see :func:`~posology.index.embedders.pairs.load_checkpoint`.

    Raises:
        ModelUnavailable: the files are missing, or not of a model with one logit.
        DeviceUnavailable: the device is missing.
    """
    checkpoint = load_checkpoint(
        model or CROSS,
        architecture="AutoModelForSequenceClassification",
        options=options or Options(),
        what="cross-encoder",
    )
    if checkpoint.model.config.num_labels != 1:
        raise ModelUnavailable(
            f"{checkpoint.folder} has {checkpoint.model.config.num_labels} logits: a cross-encoder must have one",
            model=model or CROSS,
        )
    return MedCPTReranker(checkpoint)
