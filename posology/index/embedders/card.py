"""Card of an embedder's model: its identity and use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """Identity and use of a model, independent of the library that computes its vectors."""

    #: architecture, dimension, digest of the weights, pooling and input limit
    name: str
    #: length of a text's vector
    dim: int
    #: longest input in tokens, special ones included
    limit: int
    #: how token vectors become a text's vector, with the names of modules that change it afterwards
    pooling: str
    #: whether a prompt's tokens count when token vectors are pooled
    pools_prompt: bool
    #: prefix of a text, by kind of text
    prompts: Mapping[str, str]
    #: the vocabulary id that batches are padded with
    pad: int

    def dump(self) -> str:
        """Return JSON for :meth:`parse`."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=1, sort_keys=True)

    @classmethod
    def parse(cls, text: str) -> Card:
        """Parse the JSON of :meth:`dump`.

        Raises:
            ValueError: it is not a card.
        """
        try:
            return cls(**json.loads(text))
        except TypeError as error:
            raise ValueError(f"not the card of a model: {error}") from None


class Forward(Protocol):
    """Runs a model over a padded batch. Not thread-safe."""

    @property
    def budget(self) -> int:
        """Return the number of padded tokens per batch at which it is fastest."""
        ...

    @property
    def few_shapes(self) -> bool:
        """Return whether every new shape of a batch costs memory, see :func:`.windows.batches`."""
        ...

    @property
    def depth(self) -> int:
        """Return the number of layers whose input it can return, see :meth:`layers`; 0: of none."""
        ...

    @property
    def describes(self) -> str:
        """Return library and arithmetic, for messages."""
        ...

    def __call__(
        self, ids: NDArray[np.int64], mask: NDArray[np.int64], prompt_tokens: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the vectors of the items and of their tokens.

        Args:
            ids: vocabulary ids, shape ``(rows, width)``.
            mask: 1 where there is a token, 0 where there is padding, of the same shape.
            prompt_tokens: how many tokens at the head of every row are a prompt, special ones included.

        Returns:
            Of shapes ``(rows, dim)`` and ``(rows, width, hidden)``, lengths not normalised.
        """
        ...

    def layers(
        self, ids: NDArray[np.int64], mask: NDArray[np.int64], prompt_tokens: int
    ) -> tuple[NDArray[np.float32], list[NDArray[np.float32]]]:
        """Return the vectors of the items, and of their tokens layer by layer; only if :attr:`depth` is not 0.

        Args:
            ids: see :meth:`__call__`.
            mask: see :meth:`__call__`.
            prompt_tokens: see :meth:`__call__`.

        Returns:
            Of shapes ``(rows, dim)`` and ``(rows, width, hidden)``: what goes into each layer, from the first on, and
            last the token vectors, which is ``depth + 1`` arrays.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Loaded:
    """A model in memory, ready for inference."""

    card: Card
    #: a tokenizer in the JSON of ``tokenizers``
    tokenizer: str
    forward: Forward
