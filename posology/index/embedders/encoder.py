"""Runs a model over token ids. Safe to call from several threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from tokenizers import Tokenizer

from posology.index.embedders.windows import batches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from posology.index.embedders.card import Loaded


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
    """Output of one forward pass for one item."""

    #: index of the item
    item: int
    #: the model's vector of the whole item, shape ``(dim,)``, float32, length not normalised
    pooled: NDArray[np.float32]
    #: one vector a token, special tokens left out, shape ``(n, hidden)``, float32
    tokens: NDArray[np.float32]
    #: the tokens' vectors in every layer from the embeddings to the last, ``(depth + 1)`` arrays as :attr:`tokens`;
    #: empty unless they are wanted
    layers: tuple[NDArray[np.float32], ...] = ()


class Encoder:
    """A model and its tokenizer behind two methods."""

    def __init__(self, loaded: Loaded) -> None:
        self._forward = loaded.forward
        # A private copy: transformers switches truncation and padding on its tokenizer at every
        # call, which fails when two threads do it at once. This one is never changed again.
        self._tokenizer = Tokenizer.from_str(loaded.tokenizer)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        probe = self._tokenizer.encode("a")
        content = [i for i, special in enumerate(probe.special_tokens_mask) if not special]
        self._before = probe.ids[: content[0]]
        self._after = probe.ids[content[-1] + 1 :]
        self._pad = loaded.card.pad
        #: tokens that one pass can take, special ones left out
        self.capacity = loaded.card.limit - len(self._before) - len(self._after)
        # One pass uses every core; two at once only slow each other down.
        self._turn = threading.Lock()

    def tokenize(self, texts: Sequence[str]) -> list[Tokens]:
        """Return tokens of each text with their places in it."""
        encodings = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        tokens = []
        for encoding in encodings:
            offsets = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)
            ids = np.array(encoding.ids, dtype=np.int64)
            tokens.append(Tokens(ids=ids, starts=offsets[:, 0], ends=offsets[:, 1]))
        return tokens

    @property
    def depth(self) -> int:
        """Return the number of layers whose input :meth:`run` can return; 0: of none."""
        return self._forward.depth

    def run(
        self,
        items: Sequence[NDArray[np.int64]],
        *,
        prompt_tokens: int = 0,
        layers: bool = False,
    ) -> Iterator[Pass]:
        """Encode token ids, at most :attr:`capacity` an item, in an order of its own.

        Args:
            items: ids without special tokens.
            prompt_tokens: how many tokens at the head of every item are a prompt, which some
                models leave out when they pool.
            layers: whether to return the vectors of all layers; only if :attr:`depth` is not 0.
        """
        extra = len(self._before) + len(self._after)
        lengths = [len(ids) + extra for ids in items]
        limit = self.capacity + extra
        before = np.array(self._before, dtype=np.int64)
        after = np.array(self._after, dtype=np.int64)
        first = len(before)
        prompt = prompt_tokens + first if prompt_tokens else 0
        few, budget = self._forward.few_shapes, self._forward.budget
        for batch in batches(lengths, budget=budget, limit=limit, few_shapes=few):
            ids = np.full((batch.rows, batch.width), self._pad, dtype=np.int64)
            mask = np.zeros((batch.rows, batch.width), dtype=np.int64)
            # a row of padding still attends to one token, or its mean would divide by zero
            mask[len(batch.items) :, 0] = 1
            for row, item in enumerate(batch.items):
                end = lengths[item]
                ids[row, :end] = np.concatenate([before, items[item], after])
                mask[row, :end] = 1
            with self._turn:
                if layers:
                    pooled, found = self._forward.layers(ids, mask, prompt)
                else:
                    pooled, tokens = self._forward(ids, mask, prompt)
                    found = [tokens]
            for row, item in enumerate(batch.items):
                own = [one[row, first : first + len(items[item])] for one in found]
                yield Pass(
                    item=item,
                    pooled=pooled[row],
                    tokens=own[-1],
                    layers=tuple(own) if layers else (),
                )
