"""Embedder over any sentence-transformers model. Figures: docs/concepts/encoding.md."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from posology.index.embedders.codes import Coder, first_own, token_vectors, unit
from posology.index.embedders.encoder import Encoder, Tokens
from posology.index.embedders.windows import Window, cut
from posology.text.sentences import split
from posology.types import Encoded, EncodedQuery, Passage, Sentence, TokenVectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from posology.index.embedders.card import Loaded
    from posology.index.embedders.projection import Projection
    from posology.seams import TokenCodec

#: share of the lone sentence's vector in a sentence's vector; the rest is the mean of its token vectors within the
#: passage. Each finds answers that the other misses.
ALONE = 0.5


def heading(passage: Passage) -> str:
    """Return the prefix of a passage's text for encoding: ``title + ". "``, or nothing."""
    if not passage.title:
        return ""
    return passage.title + (" " if passage.title.endswith((".", "?", "!")) else ". ")


class SentenceTransformerEmbedder:
    """A :class:`~posology.seams.Embedder` and :class:`~posology.seams.TokenEncoder`.

    Blocking and thread-safe; threads take turns batch by batch.

    Args:
        loaded: the model.
        alone: share of the lone sentence's vector in a sentence's vector, 0 to 1. Models that do
            not pool by the plain mean have no other: there it is 1.
        projection: estimates sentences' vectors from the passes over their passages, so that sentences are not read
            alone; ``None``, or one of another model: they are.
    """

    def __init__(
        self, loaded: Loaded, *, alone: float = ALONE, projection: Projection | None = None
    ) -> None:
        self._alone = alone
        self._name = loaded.card.name
        self._dim = loaded.card.dim
        self._mean_pooled = loaded.card.pooling == "mean"
        self._encoder = Encoder(loaded)
        fits = (
            projection is not None
            and projection.embedder == self._name
            and projection.layers == self._encoder.depth + 1
        )
        self._projection = projection if fits else None
        self.describes = loaded.forward.describes
        prompts = loaded.card.prompts
        self._query_prompt = prompts.get("query") or ""
        kinds = ("document", "passage", "corpus")
        self._passage_prompt = next((p for kind in kinds if (p := prompts.get(kind))), "")

    @property
    def name(self) -> str:
        """Return architecture, dimension, digest of the weights, pooling and input limit."""
        return self._name

    @property
    def dim(self) -> int:
        """Return the length of every vector."""
        return self._dim

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors of questions, shape ``(len(texts), dim)``, rows of unit length.

        A question longer than the model's input limit is cut there.
        """
        tokens = self._encoder.tokenize([self._query_prompt + text for text in texts])
        vectors = np.zeros((len(texts), self._dim), dtype=np.float32)
        cuts = [t.ids[: self._encoder.capacity] for t in tokens]
        for done in self._encoder.run(cuts, prompt_tokens=self._length(self._query_prompt)):
            vectors[done.item] = done.pooled
        return unit(vectors)

    def encode_query(self, text: str) -> EncodedQuery:
        """Return a question's vector and its tokens', from one pass; cut as :meth:`embed_queries` cuts.

        Tokens of the model's query prompt are left out, and offsets are into ``text``.
        """
        prompt = self._query_prompt
        (tokens,) = self._encoder.tokenize([prompt + text])
        ids = tokens.ids[: self._encoder.capacity]
        (done,) = self._encoder.run([ids], prompt_tokens=self._length(prompt))
        own = slice(first_own(tokens, prompt), len(ids))
        return EncodedQuery(
            vector=unit(done.pooled),
            tokens=token_vectors(done.tokens[own], tokens, own, prompt),
        )

    def embed_passages(
        self,
        passages: Sequence[Passage],
        sentences: Sequence[Sequence[Sentence]],
        codec: TokenCodec | None = None,
    ) -> list[Encoded]:
        """Return vectors of passages and of their sentences.

        The passage's vector is that of its head (title and text up to the model's input limit),
        as the model itself cuts it. Sentences beyond it are encoded in further windows. With a projection each window
        is read once; otherwise sentences are read a second time, alone.

        Args:
            passages: any number.
            sentences: for each passage its sentences, in order, as offsets into ``Passage.text``.
            codec: compresses the tokens' vectors, window by window, so that those of one batch of windows
                are held at one time. It is given what :func:`heading` and text hold, without a prompt, and
                offsets into that; see :class:`~posology.index.embedders.codes.Coder` for what is counted where.

        Raises:
            ValueError: the codec is for another embedder.
        """
        if codec is not None and codec.embedder != self._name:
            raise ValueError(f"{codec.name} compresses vectors of {codec.embedder} only")
        heads = [self._passage_prompt + heading(passage) for passage in passages]
        texts = [head + p.text for head, p in zip(heads, passages, strict=True)]
        places = [
            [(len(head) + s.start, len(head) + s.end) for s in of_passage]
            for head, of_passage in zip(heads, sentences, strict=True)
        ]
        tokens = self._encoder.tokenize(texts)
        first = np.cumsum([0, *map(len, places)])
        bounds = [_token_bounds(t, p) for t, p in zip(tokens, places, strict=True)]
        coder = None if codec is None else Coder(codec, tokens, bounds, self._passage_prompt)
        if self._projection is not None:
            vectors, sums = self._read_passages(tokens, bounds, first, coder)
            found = self._project(self._projection, sums, bounds, first)
        else:
            lone = [text[a:b] for text, p in zip(texts, places, strict=True) for a, b in p]
            vectors, found = self._read_both(tokens, bounds, first, coder, lone)
        return [
            Encoded(
                vector=vectors[i],
                sentence_vectors=found[first[i] : first[i + 1]],
                tokens=None if coder is None else coder.codes[i],
            )
            for i in range(len(passages))
        ]

    @staticmethod
    def _project(
        projection: Projection,
        sums: NDArray[np.float32],
        bounds: list[NDArray[np.int64]],
        first: NDArray[np.int64],
    ) -> NDArray[np.float32]:
        counts = [of[:, 1] - of[:, 0] for of in bounds]
        made = [projection(sums[first[i] : first[i + 1]], n) for i, n in enumerate(counts)]
        return np.concatenate(made) if made else sums[:, -1]

    def _read_both(
        self,
        tokens: list[Tokens],
        bounds: list[NDArray[np.int64]],
        first: NDArray[np.int64],
        coder: Coder | None,
        lone: list[str],
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the vectors of passages, and of their sentences from both readings, of unit length."""
        with ThreadPoolExecutor(1, thread_name_prefix="tokenizer") as aside:
            # the tokenizer is done long before the passages are
            coming = aside.submit(self._tokenize_passages, lone)
            vectors, sums = self._read_passages(tokens, bounds, first, coder)
            alone = self._read_sentences(coming.result())
        mixed = alone
        if self._mean_pooled:
            mixed = unit(self._alone * alone + (1 - self._alone) * unit(sums[:, -1]))
        return vectors, mixed

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return one vector a token; a text longer than the model's input limit is read in windows.

        Offsets are code points of the original text, not of the tokenizer's normalised one.
        """
        tokens = self._encoder.tokenize(texts)
        windows: list[Window] = []
        for i, text in enumerate(texts):
            places = [(s.start, s.end) for s in split(text)]
            windows += self._cut(i, tokens[i], _token_bounds(tokens[i], places))
        vectors: list[list[tuple[int, NDArray[np.float32]]]] = [[] for _ in texts]
        for done in self._encoder.run([tokens[w.text].ids[w.start : w.end] for w in windows]):
            window = windows[done.item]
            owned = done.tokens[: window.owned - window.start]
            vectors[window.text].append((window.start, owned))
        whole = [
            np.concatenate([v for _, v in sorted(of_text, key=lambda p: p[0])])
            for of_text in vectors
        ]
        return [
            TokenVectors(
                vectors=unit(own),
                ids=t.ids,
                starts=t.starts,
                ends=t.ends,
                lengths=np.linalg.norm(own, axis=1).astype(np.float32, copy=False),
            )
            for own, t in zip(whole, tokens, strict=True)
        ]

    def _read_passages(
        self,
        tokens: list[Tokens],
        bounds: list[NDArray[np.int64]],
        first: NDArray[np.int64],
        coder: Coder | None,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the passages' vectors, of unit length, and the sums of their sentences' token vectors.

        The sums are those of each layer that the projection reads, else of the last alone: shape ``(sentences, layers,
        dim)``.
        """
        layers = 1 if self._projection is None else self._projection.layers
        vectors = np.zeros((len(tokens), self._dim), dtype=np.float32)
        sums = np.zeros((int(first[-1]), layers, self._dim), dtype=np.float32)
        windows = [
            window
            for i in range(len(tokens))
            for window in self._cut(i, tokens[i], bounds[i])
            # what is beyond the first window counts for sentences and codes alone
            if window.start == 0
            or coder is not None
            or (self._mean_pooled and len(bounds[window.text]))
        ]
        items = [tokens[w.text].ids[w.start : w.end] for w in windows]
        prompt = self._length(self._passage_prompt)
        for done in self._encoder.run(items, prompt_tokens=prompt, layers=layers > 1):
            window = windows[done.item]
            if window.start == 0:
                vectors[window.text] = done.pooled
            if coder is not None:
                coder.add(window, done.tokens)
            if not self._mean_pooled:
                continue
            owned = np.clip(bounds[window.text], window.start, window.owned) - window.start
            read = done.layers or (done.tokens,)
            for k, (a, b) in enumerate(owned, start=int(first[window.text])):
                if a < b:
                    for layer, of_layer in enumerate(read):
                        sums[k, layer] += of_layer[a:b].sum(axis=0)
        return unit(vectors), sums

    def _tokenize_passages(self, texts: list[str]) -> list[Tokens]:
        return self._encoder.tokenize([self._passage_prompt + text for text in texts])

    def _read_sentences(self, tokens: list[Tokens]) -> NDArray[np.float32]:
        """Return each sentence's vector by itself, unit length; those too long are read in pieces."""
        windows = [w for i, t in enumerate(tokens) for w in self._cut(i, t)]
        vectors = np.zeros((len(tokens), self._dim), dtype=np.float32)
        items = [tokens[w.text].ids[w.start : w.end] for w in windows]
        for done in self._encoder.run(items, prompt_tokens=self._length(self._passage_prompt)):
            window = windows[done.item]
            vectors[window.text] += done.pooled * max(window.end - window.start, 1)
        return unit(vectors)

    def _cut(
        self, text: int, tokens: Tokens, bounds: NDArray[np.int64] | None = None
    ) -> list[Window]:
        starts = [] if bounds is None else bounds[:, 0].tolist()
        length, capacity = len(tokens.ids), self._encoder.capacity
        return cut(text, length, sentence_starts=starts, capacity=capacity)

    def _length(self, prompt: str) -> int:
        return len(self._encoder.tokenize([prompt])[0].ids) if prompt else 0


def _token_bounds(tokens: Tokens, places: list[tuple[int, int]]) -> NDArray[np.int64]:
    """Return the first token, and one past the last, of each place, shape ``(len(places), 2)``.

    A token belongs to the place in which it starts.
    """
    offsets = np.array(places, dtype=np.int64).reshape(-1, 2)
    return np.searchsorted(tokens.starts, offsets, side="left").astype(np.int64)
