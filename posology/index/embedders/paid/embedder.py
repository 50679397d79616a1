"""A paid embedder over any server with OpenAI's ``/v1/embeddings``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

import anyio
from anyio import to_thread

from posology.concurrency import map_concurrently
from posology.errors import ConfigurationError, MalformedReply
from posology.index.embedders.paid.models import PROVIDER, SERVER, EmbeddingModel, parse
from posology.llm.providers.vectors import BadVectors, unpack
from posology.store.memory import ProcessMemory
from posology.text.bounds import words_bound
from posology.types import Call, Encoded, EncodedQuery, Message, PromptId, Query, Role, Stage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from posology.seams import Complete, Memory, TokenCodec
    from posology.types import Passage, Sentence

#: Maximum texts of one request, and their tokens by their bounds. OpenAI takes 2,048 and 300,000, but a request
#: is reserved as a whole and must fit the tenant's limits per minute.
TEXTS, TOKENS = 256, 32_000
#: replaces an empty text, which providers refuse
EMPTY = "(empty)"
#: texts are sent without a template
_PROMPT = PromptId(name="embed", digest=hashlib.sha256(b"").hexdigest()[:16])
#: concurrent calls for one list of texts, within the provider's own limit
AT_ONCE = 8


class OpenAIEmbedder:
    """A :class:`~posology.seams.PaidEmbedder`.

    As an :class:`~posology.seams.Embedder` it has a name and dimension, and refuses to embed: a blocking call
    has no tenant. :class:`Bought` embeds for one.

    Args:
        model: the model.
        memory: keeps bought vectors, by server and tenant; ``None``: until the process ends.
        server: address of the server; ``None``: OpenAI.
    """

    def __init__(
        self, model: EmbeddingModel, memory: Memory | None = None, server: str | None = None
    ) -> None:
        self._model = model
        self._memory = memory or ProcessMemory()
        self._server = (server or SERVER).rstrip("/")

    @property
    def name(self) -> str:
        """Provider, model and dimension, without the server: an index has one server."""
        return self._model.identity

    @property
    def dim(self) -> int:
        """Length of every vector."""
        return self._model.dim

    @property
    def model(self) -> str:
        """``provider:name``."""
        return self._model.model

    def keeping(self, memory: Memory, server: str | None = None) -> OpenAIEmbedder:
        """Return an embedder that keeps the vectors of a server in another memory."""
        return OpenAIEmbedder(self._model, memory, server)

    def missing(self, texts: Sequence[str], *, tenant: str) -> list[Call]:
        """Return the calls that :meth:`encode` would make. Blocking."""
        own = list(dict.fromkeys(sent(text, self._model.limit) for text in texts))
        kept = self._memory.get([self._key(text, tenant) for text in own])
        left = [text for text in own if self._key(text, tenant) not in kept]
        return list(calls_for(left, self._model))

    def kept(self, text: str, *, tenant: str) -> NDArray[np.float32] | None:
        """Return the vector of a text that the tenant has bought before, shape ``(dim,)``. Blocking."""
        import numpy as np

        key = self._key(sent(text, self._model.limit), tenant)
        found = self._memory.get([key]).get(key)
        return None if found is None else np.frombuffer(found, "<f4").astype(np.float32)

    async def encode(
        self, texts: Sequence[str], complete: Complete, *, tenant: str
    ) -> NDArray[np.float32]:
        """Return vectors of texts, shape ``(len(texts), dim)``, rows of unit length.

        Equal texts are bought once, and vectors that the tenant has bought before are not bought again. A text
        that is too long for the model is truncated.

        Raises:
            MalformedReply: the vectors have the wrong length; they are paid for.
            ProviderError: a call failed. In-flight calls have ended, and their vectors are kept.
            BudgetError: the tenant's limits refuse a call.
        """
        import numpy as np

        def prepare() -> tuple[list[str], dict[bytes, bytes], list[Call]]:
            own = [sent(text, self._model.limit) for text in texts]
            wanted = list(dict.fromkeys(own))
            kept = self._memory.get([self._key(text, tenant) for text in wanted])
            left = [text for text in wanted if self._key(text, tenant) not in kept]
            return own, kept, list(calls_for(left, self._model))

        own, encoded, calls = await to_thread.run_sync(prepare)

        async def buy(call: Call) -> None:
            completion = await complete(call)
            vectors = self._vectors(completion.text, call, completion.request_id)
            bought = {
                self._key(message.content, tenant): vector.astype("<f4").tobytes()
                for message, vector in zip(call.messages, vectors, strict=True)
            }
            encoded.update(bought)
            # before anything else is awaited: paid vectors are always kept
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self._memory.put, bought)

        await map_concurrently(buy, calls, limit=AT_ONCE, finish=True)
        rows = [np.frombuffer(encoded[self._key(text, tenant)], "<f4") for text in own]
        return np.array(rows, np.float32).reshape(len(rows), self.dim)

    def _vectors(self, text: str, call: Call, request_id: str | None) -> NDArray[np.float32]:
        from posology.index.embedders.codes import unit

        try:
            vectors = unpack(text)
            if vectors.shape != (len(call.messages), self.dim):
                raise BadVectors(
                    f"it has {len(vectors)} vectors of {vectors.shape[1]} numbers, not "
                    f"{len(call.messages)} of {self.dim}"
                )
        except BadVectors as error:
            raise MalformedReply(
                f"{PROVIDER}'s reply for {call.model} cannot be used: {error}",
                provider=PROVIDER,
                model=call.model,
                request_id=request_id,
            ) from None
        return unit(vectors)

    def _key(self, text: str, tenant: str) -> bytes:
        # with the tenant, so that one tenant learns nothing of another's texts; and with the server, which may
        # give other vectors under the same name
        digest = hashlib.sha256()
        for part in ("embedding", self.name, self._server, tenant, text):
            content = part.encode("utf-8", "surrogatepass")
            digest.update(len(content).to_bytes(8, "big") + content)
        return digest.digest()

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:  # noqa: ARG002 - the seam's
        """Raise an error; see the class."""
        self._refuse()

    def encode_query(self, text: str) -> EncodedQuery:  # noqa: ARG002 - the seam's
        """Raise an error; see the class."""
        self._refuse()

    def embed_passages(
        self,
        passages: Sequence[Passage],  # noqa: ARG002 - the seam's
        sentences: Sequence[Sequence[Sentence]],  # noqa: ARG002 - the seam's
        codec: TokenCodec | None = None,  # noqa: ARG002 - the seam's
    ) -> list[Encoded]:
        """Raise an error; see the class."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ConfigurationError(
            f"the vectors of {self.name} are paid for, and there is no budget here: buy the vectors of "
            "questions with `posology search`, with the same memory and tenant"
        )


class Bought:
    """An :class:`~posology.seams.Embedder` that buys its vectors. Blocking.

    Args:
        embedder: the paid embedder.
        buy: returns the vectors of texts, shape ``(len(texts), dim)``, rows of unit length.
        given: whether passages' own vectors come from elsewhere: then they are zeros, and only sentences'
            vectors are bought.
    """

    def __init__(
        self,
        embedder: OpenAIEmbedder,
        buy: Callable[[Sequence[str]], NDArray[np.float32]],
        *,
        given: bool = False,
    ) -> None:
        self._embedder = embedder
        self._buy = buy
        self._given = given

    @property
    def name(self) -> str:
        """Name of the paid embedder."""
        return self._embedder.name

    @property
    def dim(self) -> int:
        """Length of every vector."""
        return self._embedder.dim

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors of questions, shape ``(len(texts), dim)``, rows of unit length."""
        return self._buy(list(texts))

    def encode_query(self, text: str) -> EncodedQuery:
        """Return a question's vector, without token vectors."""
        return EncodedQuery(vector=self._buy([text])[0])

    def embed_passages(
        self,
        passages: Sequence[Passage],
        sentences: Sequence[Sequence[Sentence]],
        codec: TokenCodec | None = None,
    ) -> list[Encoded]:
        """Return vectors of passages, heading included, and of each sentence by itself.

        Raises:
            ValueError: a codec is given: there are no token vectors to compress.
        """
        if codec is not None:
            raise ValueError(f"{codec.name} compresses token vectors, and {self.name} has none")
        import numpy as np

        vectors = self._buy(texts_of(passages, sentences, given=self._given))
        if self._given:
            vectors = np.concatenate([np.zeros((len(passages), self.dim), np.float32), vectors])
        rows, first = [], len(passages)
        for place, spans in enumerate(sentences):
            after = first + len(spans)
            rows.append(Encoded(vector=vectors[place], sentence_vectors=vectors[first:after]))
            first = after
        return rows


def texts_of(
    passages: Sequence[Passage], sentences: Sequence[Sequence[Sentence]], *, given: bool = False
) -> list[str]:
    """Return the texts to embed: all passages with their headings, then all sentences, passage by passage.

    Args:
        passages: any number.
        sentences: of each.
        given: whether passages' own vectors come from elsewhere: then they are left out.
    """
    from posology.index.embedders.sentence_transformer import heading

    whole = [heading(passage) + passage.text for passage in passages]
    parts = [
        span.of(passage.text)
        for passage, spans in zip(passages, sentences, strict=True)
        for span in spans
    ]
    return parts if given else whole + parts


def load(name: str) -> OpenAIEmbedder:
    """Return the embedder of a name, without ``openai:``. Nothing is loaded or sent.

    Raises:
        EmbedderUnavailable: the name is malformed, or the length of the model's vectors is unknown.
    """
    return OpenAIEmbedder(parse(name))


def calls_for(texts: Sequence[str], model: EmbeddingModel) -> Iterator[Call]:
    """Yield the calls for the vectors of texts, in order; the texts are as :func:`sent` returns them."""
    waiting: list[str] = []
    tokens = 0
    for text in texts:
        own = words_bound(text)
        if waiting and (len(waiting) >= TEXTS or tokens + own > TOKENS):
            yield _call(waiting, model)
            waiting, tokens = [], 0
        waiting.append(text)
        tokens += own
    if waiting:
        yield _call(waiting, model)


def sent(text: str, limit: int) -> str:
    """Return the beginning of a text whose bound on its tokens is at most ``limit``."""
    if not text.strip():
        return EMPTY
    if words_bound(text) <= limit:
        return text
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if words_bound(text[:middle]) <= limit else (low, middle - 1)
    return text[:low] if text[:low].strip() else EMPTY


def _call(texts: Sequence[str], model: EmbeddingModel) -> Call:
    return Call(
        stage=Stage.EMBED,
        model=model.model,
        query=Query(text=texts[0]),
        excerpts=(),
        messages=tuple(Message(role=Role.USER, content=text) for text in texts),
        prompt=_PROMPT,
        max_tokens=0,
        dimensions=model.dim if model.asked else None,
    )
