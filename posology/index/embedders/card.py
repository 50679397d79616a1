"""What an embedder must know of its model besides the arithmetic."""

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
    """A model's identity and use. Whatever computes its vectors, the card is the same."""

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
    #: what stands before a text, by the kind of text
    prompts: Mapping[str, str]
    #: the vocabulary id that batches are padded with
    pad: int

    def dump(self) -> str:
        """JSON, for :meth:`parse`."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=1, sort_keys=True)

    @classmethod
    def parse(cls, text: str) -> Card:
        """What :meth:`dump` wrote.

        Raises:
            ValueError: it is not that.
        """
        try:
            return cls(**json.loads(text))
        except TypeError as error:
            raise ValueError(f"no card of a model: {error}") from None


class Forward(Protocol):
    """Runs a model over a padded batch. Not safe to call from two threads at once."""

    @property
    def budget(self) -> int:
        """Padded tokens a batch at which it is fastest."""
        ...

    @property
    def few_shapes(self) -> bool:
        """Whether every new shape of a batch costs memory, see :func:`.windows.batches`."""
        ...

    @property
    def describes(self) -> str:
        """Library and arithmetic, for people."""
        ...

    def __call__(
        self, ids: NDArray[np.int64], mask: NDArray[np.int64], prompt_tokens: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Vectors of the items and of their tokens.

        Args:
            ids: vocabulary ids, shape ``(rows, width)``.
            mask: 1 where there is a token, 0 where there is padding, of the same shape.
            prompt_tokens: how many tokens at the head of every row are a prompt, special ones included.

        Returns:
            Of shapes ``(rows, dim)`` and ``(rows, width, hidden)``, lengths not normalised.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Loaded:
    """A model in memory, ready for inference."""

    card: Card
    #: a tokenizer in the JSON of ``tokenizers``
    tokenizer: str
    forward: Forward
