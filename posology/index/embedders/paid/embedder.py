"""An embedder over any server that speaks OpenAI's ``/v1/embeddings``, paid call by call."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

import anyio
from anyio import to_thread

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

#: Texts of one request, and their tokens by their bounds, at most. OpenAI takes 2,048 and 300,000; but a request
#: is reserved as a whole, and is to fit into a tenant's minute.
TEXTS, TOKENS = 256, 32_000
#: what is sent for a text without a word, which providers refuse
EMPTY = "(empty)"
#: texts are sent as they are: the template is empty
_PROMPT = PromptId(name="embed", digest=hashlib.sha256(b"").hexdigest()[:16])
#: calls under way at once, for one lot of texts; the provider's own limit holds, too
AT_ONCE = 8


class OpenAIEmbedder:
    """A :class:`~posology.seams.PaidEmbedder`.

    As an :class:`~posology.seams.Embedder` it says its name and dimension, and refuses to embed: a blocking call
    has no tenant to pay. :class:`Bought` embeds for one.

    Args:
        model: whose vectors.
        memory: keeps what was bought, by server and tenant; ``None``: for as long as the process lives.
        server: address of whoever is paid; ``None``: OpenAI.
    """

    def __init__(
        self, model: EmbeddingModel, memory: Memory | None = None, server: str | None = None
    ) -> None:
        self._model = model
        self._memory = memory or ProcessMemory()
        self._server = (server or SERVER).rstrip("/")

    @property
    def name(self) -> str:
        """Provider, model and dimension. Which server it is, nothing says: one index, one server."""
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
        """The same, which keeps what it bought of a server in another place."""
        return OpenAIEmbedder(self._model, memory, server)

    def missing(self, texts: Sequence[str], *, tenant: str) -> list[Call]:
        """The calls that :meth:`encode` would make. Blocking."""
        own = list(dict.fromkeys(sent(text, self._model.limit) for text in texts))
        kept = self._memory.get([self._key(text, tenant) for text in own])
        left = [text for text in own if self._key(text, tenant) not in kept]
        return list(calls_for(left, self._model))

    def kept(self, text: str, *, tenant: str) -> NDArray[np.float32] | None:
        """The vector of a text that the tenant has bought before, shape ``(dim,)``. Blocking."""
        import numpy as np

        key = self._key(sent(text, self._model.limit), tenant)
        found = self._memory.get([key]).get(key)
        return None if found is None else np.frombuffer(found, "<f4").astype(np.float32)

    async def encode(
        self, texts: Sequence[str], complete: Complete, *, tenant: str
    ) -> NDArray[np.float32]:
        """Vectors of texts, shape ``(len(texts), dim)``, rows of unit length.

        Equal texts are bought once, and what the tenant has bought before is not bought again. Of a text longer
        than the model takes, its beginning is read.

        Raises:
            MalformedReply: the vectors are not of the length that the index is to have; they are paid for.
            ProviderError: a call failed. What was under way has ended, and what it brought is kept.
            BudgetError: the tenant's limits do not allow it.
        """
        import numpy as np

        def prepare() -> tuple[list[str], dict[bytes, bytes], list[Call]]:
            own = [sent(text, self._model.limit) for text in texts]
            wanted = list(dict.fromkeys(own))
            kept = self._memory.get([self._key(text, tenant) for text in wanted])
            left = [text for text in wanted if self._key(text, tenant) not in kept]
            return own, kept, list(calls_for(left, self._model))

        own, found, calls = await to_thread.run_sync(prepare)

        async def buy(call: Call) -> None:
            completion = await complete(call)
            vectors = self._vectors(completion.text, call, completion.request_id)
            bought = {
                self._key(message.content, tenant): vector.astype("<f4").tobytes()
                for message, vector in zip(call.messages, vectors, strict=True)
            }
            found.update(bought)
            # before the next is awaited: what was paid for is kept, whatever happens then
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self._memory.put, bought)

        await _each(buy, calls)
        rows = [np.frombuffer(found[self._key(text, tenant)], "<f4") for text in own]
        return np.array(rows, np.float32).reshape(len(rows), self.dim)

    def _vectors(self, text: str, call: Call, request_id: str | None) -> NDArray[np.float32]:
        from posology.index.embedders.codes import unit

        try:
            vectors = unpack(text)
            if vectors.shape != (len(call.messages), self.dim):
                raise BadVectors(
                    f"it has {len(vectors)} vectors of {vectors.shape[1]} numbers, and "
                    f"{len(call.messages)} of {self.dim} are wanted"
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
        # of the tenant, too: what one has paid for tells another nothing, not even that it was asked; and of the
        # server: one that was tried may give other vectors under the same name
        digest = hashlib.sha256()
        for part in ("embedding", self.name, self._server, tenant, text):
            content = part.encode("utf-8", "surrogatepass")
            digest.update(len(content).to_bytes(8, "big") + content)
        return digest.digest()

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:  # noqa: ARG002 - the seam's
        """Refuse; see the class."""
        self._refuse()

    def encode_query(self, text: str) -> EncodedQuery:  # noqa: ARG002 - the seam's
        """Refuse; see the class."""
        self._refuse()

    def embed_passages(
        self,
        passages: Sequence[Passage],  # noqa: ARG002 - the seam's
        sentences: Sequence[Sequence[Sentence]],  # noqa: ARG002 - the seam's
        codec: TokenCodec | None = None,  # noqa: ARG002 - the seam's
    ) -> list[Encoded]:
        """Refuse; see the class."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ConfigurationError(
            f"the vectors of {self.name} are paid for, and nothing is spent here: buy the vectors of "
            "questions by searching for them once (posology search), with the same memory and tenant"
        )


class Bought:
    """An :class:`~posology.seams.Embedder` that buys what it is asked for. Blocking.

    Args:
        embedder: whose vectors.
        buy: pays for those of texts; shape ``(len(texts), dim)``, rows of unit length.
        given: whether passages' own vectors are had from elsewhere: then zeros stand for them, and those of
            sentences alone are bought.
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
        """The embedder's."""
        return self._embedder.name

    @property
    def dim(self) -> int:
        """Length of every vector."""
        return self._embedder.dim

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape ``(len(texts), dim)``, rows of unit length."""
        return self._buy(list(texts))

    def encode_query(self, text: str) -> EncodedQuery:
        """A question's vector; token vectors it has none."""
        return EncodedQuery(vector=self._buy([text])[0])

    def embed_passages(
        self,
        passages: Sequence[Passage],
        sentences: Sequence[Sequence[Sentence]],
        codec: TokenCodec | None = None,
    ) -> list[Encoded]:
        """Vectors of passages, heading included, and of each sentence by itself.

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
    """What is embedded: all passages with their headings, then all sentences, passage by passage.

    Args:
        passages: any number.
        sentences: of each.
        given: whether passages' own vectors are had from elsewhere: then they are left out.
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
    """The embedder of what stands behind ``openai:``. Nothing is loaded, and nothing is sent.

    Raises:
        EmbedderUnavailable: it names no model, or one whose vectors are nobody knows how long.
    """
    return OpenAIEmbedder(parse(name))


async def _each(work: Callable[[Call], Awaitable[None]], calls: Sequence[Call]) -> None:
    """Do a few at once; after one has failed no more are begun, and those under way come to their end."""
    waiting = iter(calls)
    raised: list[Exception] = []

    async def take_up() -> None:
        for call in waiting:
            if raised:
                return
            try:
                await work(call)
            except Exception as error:  # noqa: BLE001 - raised again below, out of the group's wrapping
                raised.append(error)

    async with anyio.create_task_group() as group:
        for _ in range(min(AT_ONCE, len(calls))):
            group.start_soon(take_up)
    if raised:
        raise raised[0]


def calls_for(texts: Sequence[str], model: EmbeddingModel) -> Iterator[Call]:
    """The calls that bring the vectors of texts, in their order; see :func:`sent` for what of each is sent."""
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
    """What is sent of a text: its beginning, as long as a bound on its tokens is at most ``limit``."""
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
