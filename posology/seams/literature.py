"""Seams of embedding, re-ranking and annotation."""

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
        """Return one score for each passage, shape ``(len(retrieval.passages),)``; the larger the better."""
        ...


class Annotator(Protocol):
    """Computes data for compressors at ingest, passage by passage. Blocking."""

    @property
    def name(self) -> str:
        """Identity of its method and model; an index keeps it."""
        ...

    def learn(self, passages: Iterable[Passage]) -> None:
        """Learn from the passages to be ingested, before any is annotated."""
        ...

    def dump(self) -> bytes | None:
        """Return the learned state, which the index stores; ``None``: there is none."""
        ...

    def restore(self, learned: bytes) -> None:
        """Restore the state that :meth:`dump` returned, instead of learning.

        Raises:
            ValueError: the state is of another kind.
        """
        ...

    def __call__(
        self, passages: Sequence[Passage], sentences: Sequence[Sequence[Sentence]]
    ) -> list[Phrases]:
        """Return one :class:`~posology.types.Phrases` for each passage."""
        ...


class Embedder(Protocol):
    """Text to vectors. Queries and passages may use different encoders.

    The score of a passage is the inner product of its vector and the question's. Vectors have unit length,
    except for models that publish the inner product of unnormalised vectors, such as MedCPT.
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
        """Return vectors of questions, shape ``(len(texts), dim)``."""
        ...

    def encode_query(self, text: str) -> EncodedQuery:
        """Return a question's vector, and its token vectors if the embedder has any."""
        ...

    def embed_passages(
        self,
        passages: Sequence[Passage],
        sentences: Sequence[Sequence[Sentence]],
        codec: TokenCodec | None = None,
    ) -> list[Encoded]:
        """Return one :class:`~posology.types.Encoded` for each passage: its vector and its sentences' vectors.

        Args:
            passages: any number.
            sentences: for each passage its sentences, as offsets into ``Passage.text``.
            codec: compresses the token vectors of the same passes, window by window; ``None``: no token
                vectors are needed.
        """
        ...


@runtime_checkable
class Unnormalised(Protocol):
    """An embedder whose vectors are not of unit length: their lengths count.

    Test for it with ``isinstance(embedder, Unnormalised)``.
    """

    @property
    def lengths_count(self) -> bool:
        """Always ``True``."""
        ...


@runtime_checkable
class PaidEmbedder(Protocol):
    """An embedder whose vectors are bought from a provider, call by call.

    Test for it with ``isinstance(embedder, PaidEmbedder)``. Its blocking methods raise, since they have no
    budget.
    """

    @property
    def model(self) -> str:
        """The model of its calls, ``provider:name``."""
        ...

    async def encode(
        self, texts: Sequence[str], complete: Complete, *, tenant: str
    ) -> NDArray[np.float32]:
        """Return vectors of texts, shape ``(len(texts), dim)``, rows of unit length.

        Vectors that the tenant has bought before are not bought again.

        Args:
            texts: any number; equal ones are bought once.
            complete: spends, by :attr:`model`.
            tenant: pays.

        Raises:
            ProviderError: a call failed; vectors of the other calls are kept.
        """
        ...

    def missing(self, texts: Sequence[str], *, tenant: str) -> Sequence[Call]:
        """Return the calls that :meth:`encode` would make. Blocking."""
        ...

    def kept(self, text: str, *, tenant: str) -> NDArray[np.float32] | None:
        """Return the vector of a text that the tenant has bought before, shape ``(dim,)``. Blocking."""
        ...


class TokenCodec(Protocol):
    """Compresses contextual token vectors to a few bytes each, which an index keeps. Blocking."""

    @property
    def name(self) -> str:
        """Identity of its method and learned state; an index stores it."""
        ...

    @property
    def embedder(self) -> str:
        """Name of the embedder whose vectors it compresses; it refuses others."""
        ...

    @property
    def width(self) -> int:
        """Bytes per token."""
        ...

    def __call__(self, tokens: TokenVectors) -> NDArray[np.uint8]:
        """Return codes, shape ``(n, width)``: one row for each token."""
        ...


class TokenEncoder(Protocol):
    """Text to one contextual vector for each token, for late interaction. Blocking."""

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return one :class:`~posology.types.TokenVectors` for each text; long texts are not cut."""
        ...
