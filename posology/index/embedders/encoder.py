"""Runs a model over token ids. Safe to call from several threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from tokenizers import Tokenizer

from posology.index.embedders.windows import batches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from posology.index.embedders.models import Loaded

#: Padded tokens a batch: small enough that the activations stay in the cache of the cores. On two
#: cores 8,000 is a third slower.
TOKEN_BUDGET = 2_048


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Tokens:
    """A tokenised text, special tokens left out."""

    #: vocabulary ids, shape ``(n,)``
    ids: NDArray[np.int64]
    #: code-point offsets into the text, shape ``(n,)`` each
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Pass:
    """What one forward pass gave for one item."""

    #: index of the item
    item: int
    #: the model's vector of the whole item, shape ``(dim,)``, float32, length not normalised
    pooled: NDArray[np.float32]
    #: one vector a token, special tokens left out, shape ``(n, hidden)``, float32
    tokens: NDArray[np.float32]


class Encoder:
    """A model and its tokenizer behind two methods."""

    def __init__(self, loaded: Loaded) -> None:
        self._model = loaded.model
        # A private copy: transformers switches truncation and padding on its tokenizer at every
        # call, which fails when two threads do it at once. This one is never changed again.
        backend = loaded.model.tokenizer.backend_tokenizer
        self._tokenizer = Tokenizer.from_str(backend.to_str())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        probe = self._tokenizer.encode("a")
        content = [i for i, special in enumerate(probe.special_tokens_mask) if not special]
        self._before = probe.ids[: content[0]]
        self._after = probe.ids[content[-1] + 1 :]
        pad = getattr(loaded.model.tokenizer, "pad_token_id", None)
        self._pad = 0 if pad is None else int(pad)
        #: tokens that one pass can take, special ones left out
        self.capacity = loaded.limit - len(self._before) - len(self._after)
        # One pass uses every core; two at once only slow each other down.
        self._turn = threading.Lock()

    def tokenize(self, texts: Sequence[str]) -> list[Tokens]:
        """Tokens of each text with their places in it."""
        encodings = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        tokens = []
        for encoding in encodings:
            offsets = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)
            ids = np.array(encoding.ids, dtype=np.int64)
            tokens.append(Tokens(ids=ids, starts=offsets[:, 0], ends=offsets[:, 1]))
        return tokens

    def run(self, items: Sequence[NDArray[np.int64]], *, prompt_tokens: int = 0) -> Iterator[Pass]:
        """Encode token ids, at most :attr:`capacity` an item, in an order of its own.

        Args:
            items: ids without special tokens.
            prompt_tokens: how many tokens at the head of every item are a prompt, which some
                models leave out when they pool.
        """
        extra = len(self._before) + len(self._after)
        lengths = [len(ids) + extra for ids in items]
        limit = self.capacity + extra
        for batch in batches(lengths, budget=TOKEN_BUDGET, limit=limit):
            ids = torch.full((batch.rows, batch.width), self._pad, dtype=torch.long)
            mask = torch.zeros((batch.rows, batch.width), dtype=torch.long)
            # a row of padding still attends to one token, or its mean would divide by zero
            mask[len(batch.items) :, 0] = 1
            for row, item in enumerate(batch.items):
                line = [*self._before, *items[item].tolist(), *self._after]
                ids[row, : len(line)] = torch.tensor(line, dtype=torch.long)
                mask[row, : len(line)] = 1
            pooled, tokens = self._forward(ids, mask, prompt_tokens)
            first = len(self._before)
            for row, item in enumerate(batch.items):
                yield Pass(
                    item=item,
                    pooled=pooled[row],
                    tokens=tokens[row, first : first + len(items[item])],
                )

    def _forward(
        self, ids: torch.Tensor, mask: torch.Tensor, prompt_tokens: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        features: dict[str, torch.Tensor | int] = {"input_ids": ids, "attention_mask": mask}
        if prompt_tokens:
            features["prompt_length"] = prompt_tokens + len(self._before)
        with self._turn, torch.inference_mode():
            output = self._model(features)
            pooled, tokens = output["sentence_embedding"], output["token_embeddings"]
            return pooled.float().numpy(), tokens.float().numpy()
