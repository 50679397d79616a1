"""What is computed of the literature, and of questions to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from posology.seams.answering import Complete
from posology.types import (
    Call,
    Encoded,
    EncodedQuery,
    Passage,
    Phrases,
    Retrieval,
    Sentence,
    TokenVectors,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Reranker(Protocol):
    """Scores retrieved passages by how well they answer the question. Blocking."""

    @property
    def name(self) -> str:
        """Identity of its method and model, for the record."""
        ...

    def __call__(self, retrieval: Retrieval) -> NDArray[np.float32]:
        """One score a passage, shape ``(len(retrieval.passages),)``; the larger the better."""
        ...


class Annotator(Protocol):
    """Computes at ingest what a compressor needs of every passage. Blocking."""

    @property
    def name(self) -> str:
        """Identity of its method and model; an index keeps it."""
        ...

    def learn(self, passages: Iterable[Passage]) -> None:
        """Read what is to be ingested, before any of it is annotated."""
        ...

    def dump(self) -> bytes | None:
        """What it has learned, which the index keeps; ``None``: nothing, its name says it all."""
        ...

    def restore(self, learned: bytes) -> None:
        """Take up what :meth:`dump` gave, in place of learning.

        Raises:
            ValueError: it is something else.
        """
        ...

    def __call__(
        self, passages: Sequence[Passage], sentences: Sequence[Sequence[Sentence]]
    ) -> list[Phrases]:
        """One :class:`~posology.types.Phrases` a passage."""
        ...


class Embedder(Protocol):
    """Text to vectors. Queries and passages may use different encoders.

    What a question's and a passage's vectors have to do with each other is their inner product. They are of unit
    length, but for models whose published score is the inner product of vectors as they are, such as MedCPT's.
    Sentences' vectors are always of unit length.

    Blocking: call it from a worker thread.
    """

    @property
    def name(self) -> str:
        """Identity of model, weights and pooling; an index refuses an embedder of another name."""
        ...

    @property
    def dim(self) -> int:
        """Length of every vector."""
        ...

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape ``(len(texts), dim)``."""
        ...

    def encode_query(self, text: str) -> EncodedQuery:
        """A question's vector, and its tokens' from the same pass, where the embedder has any."""
        ...

    def embed_passages(
        self,
        passages: Sequence[Passage],
        sentences: Sequence[Sequence[Sentence]],
        codec: TokenCodec | None = None,
    ) -> list[Encoded]:
        """One :class:`~posology.types.Encoded` a passage: its vector and its sentences' vectors.

        Args:
            passages: any number.
            sentences: for each passage its sentences, as offsets into ``Passage.text``.
            codec: compresses the tokens' vectors of the same passes, those of one window at a time; ``None``:
                they are not wanted.
        """
        ...


@runtime_checkable
class Unnormalised(Protocol):
    """An embedder whose passages' and questions' vectors are as its model gives them: their lengths count.

    Whoever holds an :class:`Embedder` tells them apart by ``isinstance(one, Unnormalised)``.
    """

    @property
    def lengths_count(self) -> bool:
        """That they do."""
        ...


@runtime_checkable
class PaidEmbedder(Protocol):
    """An embedder whose vectors are bought from a provider, call by call.

    Whoever holds an :class:`Embedder` tells them apart by ``isinstance(one, PaidEmbedder)``. Its blocking methods
    refuse: they have nothing to spend.
    """

    @property
    def model(self) -> str:
        """``provider:name``, by which its calls are paid for."""
        ...

    async def encode(
        self, texts: Sequence[str], complete: Complete, *, tenant: str
    ) -> NDArray[np.float32]:
        """Vectors of texts, shape ``(len(texts), dim)``, rows of unit length.

        What the tenant has bought before is not bought again.

        Args:
            texts: any number; equal ones are bought once.
            complete: spends, by :attr:`model`.
            tenant: whose money it is.

        Raises:
            ProviderError: a call failed; what others brought is kept.
        """
        ...

    def missing(self, texts: Sequence[str], *, tenant: str) -> Sequence[Call]:
        """The calls that :meth:`encode` would make. Blocking."""
        ...

    def kept(self, text: str, *, tenant: str) -> NDArray[np.float32] | None:
        """The vector of a text that the tenant has bought before, shape ``(dim,)``. Blocking."""
        ...


class TokenCodec(Protocol):
    """Compresses contextual token vectors to a few bytes each, which an index keeps. Blocking."""

    @property
    def name(self) -> str:
        """Identity of its method and what it has learned; an index keeps it."""
        ...

    @property
    def embedder(self) -> str:
        """Name of the embedder whose vectors it has learned to compress; others' it refuses."""
        ...

    @property
    def width(self) -> int:
        """Bytes a token."""
        ...

    def __call__(self, tokens: TokenVectors) -> NDArray[np.uint8]:
        """Shape ``(n, width)``: one row a token."""
        ...


class TokenEncoder(Protocol):
    """Text to one contextual vector a token, for late interaction. Blocking."""

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """One :class:`~posology.types.TokenVectors` a text; long texts are not cut."""
        ...
