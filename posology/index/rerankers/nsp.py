"""Next-sentence prediction as a re-ranker: whether a passage could follow the question (TCRA-LLM, 4.1.1).

The paper takes the head that BERT was pre-trained with, untrained for ranking: "the retrieved information is more
likely to be predicted as the next sentence of the question if it is more related to the question" (Liu et al.
2023, equation 1).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from posology.errors import ModelUnavailable
from posology.hub import digest, loading, locate
from posology.index.embedders.sentence_transformer import heading
from posology.index.embedders.windows import batches
from posology.types import Passage, Retrieval

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: padded tokens of one forward pass
TOKEN_BUDGET = 4_096
#: maximum share of the window for the question; the passage gets the rest
_QUESTION = 0.5


class NextSentence:
    """:class:`~posology.seams.Reranker` with a model's next-sentence head. Make it with :func:`load`.

    A score is the probability that the passage follows the question (equation 1). Of a pair that is longer than the
    model's window, the end of the passage is cut. Thread-safe; threads take turns.
    """

    def __init__(self, model: Any, tokenizer: Any, *, name: str, limit: int) -> None:
        """Combine a model with its tokenizer.

        Args:
            model: an ``AutoModelForNextSentencePrediction`` in evaluation mode.
            tokenizer: a fast tokenizer.
            name: identity of both.
            limit: maximum number of tokens, special ones included.
        """
        from tokenizers import Tokenizer

        self.name = name
        self._model = model
        # a copy of its own: truncation and padding of the shared one change under other threads
        self._tokenizer = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._first, self._sep = int(tokenizer.cls_token_id), int(tokenizer.sep_token_id)
        self._pad = int(tokenizer.pad_token_id or 0)
        self._limit = limit
        self._turn = threading.Lock()

    def __call__(self, retrieval: Retrieval) -> NDArray[np.float32]:
        """Return one probability a passage, shape ``(len(retrieval.passages),)``."""
        return self.probabilities(retrieval.query.text, [one.passage for one in retrieval.passages])

    def probabilities(self, question: str, passages: Sequence[Passage]) -> NDArray[np.float32]:
        """Return the probability that each passage follows the question, shape ``(len(passages),)``."""
        import torch

        scores = np.zeros(len(passages), np.float32)
        room = self._limit - 3
        asked = self._ids(question)[: int(room * _QUESTION)]
        texts = [self._ids(heading(p) + p.text)[: room - len(asked)] for p in passages]
        lengths = [3 + len(asked) + len(text) for text in texts]
        for batch in batches(lengths, budget=TOKEN_BUDGET, limit=self._limit):
            shape = (batch.rows, batch.width)
            ids = torch.full(shape, self._pad, dtype=torch.long)
            kinds, mask = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long)
            # a row of padding still attends to one token
            mask[len(batch.items) :, 0] = 1
            for row, item in enumerate(batch.items):
                head = [self._first, *asked, self._sep]
                line = [*head, *texts[item], self._sep]
                ids[row, : len(line)] = torch.tensor(line)
                kinds[row, len(head) : len(line)] = 1
                mask[row, : len(line)] = 1
            with self._turn, torch.inference_mode():
                logits = self._model(
                    input_ids=ids, attention_mask=mask, token_type_ids=kinds
                ).logits
            # the first of the two: that it is the next
            follows = torch.softmax(logits.float(), dim=-1)[:, 0].numpy()
            scores[list(batch.items)] = follows[: len(batch.items)]
        return scores

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids


def load(model: str) -> NextSentence:
    """Load a BERT with its next-sentence head. Blocking, never over the network, and no code of its own is run.

    Args:
        model: a folder, or a hub name whose files are in the local cache: ``bert-base-uncased``.

    Raises:
        ModelUnavailable: the safetensors files are missing or damaged, or the model has no such head.
    """
    folder = locate(model)
    try:
        from transformers import AutoModelForNextSentencePrediction, AutoTokenizer

        with loading(reports=False):
            loaded, report = AutoModelForNextSentencePrediction.from_pretrained(
                folder,
                local_files_only=True,
                use_safetensors=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
        tokenizer = AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    # the parsers of damaged files raise any class of error
    except Exception as error:
        raise ModelUnavailable(
            f"{folder} cannot be loaded as a next-sentence model: {error}", model=model
        ) from error
    if missing := sorted(report["missing_keys"]):
        raise ModelUnavailable(
            f"{folder} has no next-sentence head ({', '.join(missing[:3])}): use a pre-trained BERT such as "
            "bert-base-uncased",
            model=model,
        )
    if not getattr(tokenizer, "is_fast", False):
        raise ModelUnavailable(f"{folder} must have a fast tokenizer", model=model)
    loaded.eval()
    stated = (loaded.config.max_position_embeddings, tokenizer.model_max_length)
    return NextSentence(
        loaded,
        tokenizer,
        name=f"nsp-{loaded.config.model_type}:{digest(folder)}",
        limit=int(min(stated)),
    )
