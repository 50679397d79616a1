"""MedCPT: one encoder for questions and one for articles, trained on PubMed's clicks (Jin et al. 2023).

Used as the model cards of ``ncbi/MedCPT-Query-Encoder`` and ``ncbi/MedCPT-Article-Encoder`` publish it: a question
of up to 64 tokens; an article as the pair of its title and its abstract, up to 512 tokens together; the last hidden
state of [CLS]; relevance as the inner product of the two, whose lengths count: nothing is normalised.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from posology.errors import EmbedderUnavailable, ModelUnavailable
from posology.hub import digest
from posology.index.embedders.codes import unit
from posology.index.embedders.options import Options
from posology.index.embedders.pairs import Checkpoint, Reader, load_checkpoint
from posology.types import Encoded, EncodedQuery, Passage, Sentence

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    from posology.seams import TokenCodec

#: the published checkpoints
QUERY, ARTICLE = "ncbi/MedCPT-Query-Encoder", "ncbi/MedCPT-Article-Encoder"
#: maximum number of tokens by the model cards, special ones included
QUERY_LIMIT, ARTICLE_LIMIT = 64, 512


class MedCPTEmbedder:
    """An :class:`~posology.seams.Embedder` over two checkpoints. Build it with :func:`load`.

    A question's and a passage's vectors are as the models give them: their inner product is MedCPT's score, and
    their lengths are part of it. A sentence's vector is that of the article that has the passage's title and this
    sentence for its abstract, since only the article encoder's vectors stand in that relation to a question's; it
    is made to unit length, as the index keeps its direction alone.

    Blocking; safe to call from several threads, which take turns batch by batch.
    """

    def __init__(self, query: Checkpoint, article: Checkpoint) -> None:
        """Combine the encoders.

        Raises:
            ModelUnavailable: their vectors are not of one length.
        """
        dim, other = int(query.model.config.hidden_size), int(article.model.config.hidden_size)
        if dim != other:
            raise ModelUnavailable(
                f"{query.folder} gives vectors of {dim} numbers and {article.folder} of {other}: "
                "they must have equal dimensions",
                model=str(article.folder),
            )
        self._queries = Reader(query, limit=QUERY_LIMIT, head=first_token)
        self._articles = Reader(article, limit=ARTICLE_LIMIT, head=first_token)
        self._dim = dim
        self._name = (
            f"medcpt-{dim}:{digest(query.folder)}:{digest(article.folder)}:"
            f"{self._queries.limit}:{self._articles.limit}"
        )

    @property
    def name(self) -> str:
        """Return the dimension, digests of the weights of both encoders, and their limits."""
        return self._name

    @property
    def dim(self) -> int:
        """Return the length of every vector."""
        return self._dim

    @property
    def lengths_count(self) -> bool:
        """MedCPT's score is the inner product of vectors as they are."""
        return True

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors of questions as the query encoder gives them, shape ``(len(texts), dim)``.

        What is beyond 64 tokens is cut.
        """
        return self._queries(list(texts), self._dim)

    def encode_query(self, text: str) -> EncodedQuery:
        """Return a question's vector; token vectors it has none."""
        return EncodedQuery(vector=self.embed_queries([text])[0])

    def embed_passages(
        self,
        passages: Sequence[Passage],
        sentences: Sequence[Sequence[Sentence]],
        codec: TokenCodec | None = None,
    ) -> list[Encoded]:
        """Return vectors of passages, as the article encoder gives them, and of their sentences, of unit length.

        What is beyond 512 tokens of title and text is cut, as published: a sentence there still has its own
        vector.

        Raises:
            ValueError: a codec is given: there are no token vectors to compress.
        """
        if codec is not None:
            raise ValueError(f"{codec.name} needs token vectors, and MedCPT has none")
        whole = [(passage.title, passage.text) for passage in passages]
        parts = [
            (passage.title, sentence.of(passage.text))
            for passage, spans in zip(passages, sentences, strict=True)
            for sentence in spans
        ]
        vectors = self._articles(whole, self._dim)
        of_sentences = unit(self._articles(parts, self._dim))
        ends = np.cumsum([len(spans) for spans in sentences])
        return [
            Encoded(vector=vector, sentence_vectors=of_sentences[end - len(spans) : end])
            for vector, spans, end in zip(vectors, sentences, ends, strict=True)
        ]


def first_token(output: Any) -> torch.Tensor:
    """Return the last hidden state of [CLS], shape ``(rows, hidden)``."""
    states: torch.Tensor = output.last_hidden_state
    return states[:, 0, :]


def load(models: str = "", options: Options | None = None) -> MedCPTEmbedder:
    """Load both encoders. Blocking, and never over the network.

    Args:
        models: ``QUERY,ARTICLE``, a folder or a hub name each; empty: those that are published.
        options: how they compute: on which device, and in which of torch's precisions.

    Raises:
        EmbedderUnavailable: there are not two such models; or ONNX is demanded, or int8, which it alone has.
        DeviceUnavailable: the device is not there.
    """
    given = options or Options()
    called = f"medcpt:{models}" if models else "medcpt"
    if given.backend == "onnx" or given.precision == "int8":
        raise EmbedderUnavailable(
            "MedCPT runs on torch only, in float32 or bfloat16", embedder=called
        )
    named = [part.strip() for part in models.split(",")] if models.strip() else [QUERY, ARTICLE]
    if len(named) != 2 or not all(named):
        raise EmbedderUnavailable(
            f"MedCPT has two encoders: write medcpt:QUERY,ARTICLE (got medcpt:{models})",
            embedder=f"medcpt:{models}",
        )
    try:
        query, article = (
            load_checkpoint(one, architecture="AutoModel", options=given, what="MedCPT encoder")
            for one in named
        )
        return MedCPTEmbedder(query, article)
    except ModelUnavailable as error:
        raise EmbedderUnavailable(error.message, embedder=called) from error
