"""The embedder over any sentence-transformers model. Figures: docs/decisions/0005."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from posology.index.embedders.encoder import Encoder, Tokens
from posology.index.embedders.windows import Window, cut
from posology.text.sentences import split
from posology.types import Encoded, Passage, Sentence, TokenVectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from posology.index.embedders.models import Loaded

#: A sentence's vector: this much of the vector of the sentence alone, the rest of the mean of its
#: token vectors as they are within the passage. Each finds answers that the other misses.
ALONE = 0.5


def heading(passage: Passage) -> str:
    """What stands before a passage's text when it is encoded: ``title + ". "``, or nothing."""
    if not passage.title:
        return ""
    return passage.title + (" " if passage.title.endswith((".", "?", "!")) else ". ")


class SentenceTransformerEmbedder:
    """A :class:`~posology.seams.Embedder` and :class:`~posology.seams.TokenEncoder`.

    Blocking; safe to call from several threads, which take turns batch by batch.

    Args:
        loaded: the model.
        alone: share of the lone sentence's vector in a sentence's vector, 0 to 1. Models that do
            not pool by the plain mean have no other: there it is 1.
    """

    def __init__(self, loaded: Loaded, *, alone: float = ALONE) -> None:
        self._alone = alone
        self._name = loaded.name
        self._dim = loaded.dim
        self._mean_pooled = loaded.mean_pooled
        self._encoder = Encoder(loaded)
        prompts = loaded.model.prompts
        self._query_prompt = prompts.get("query") or ""
        kinds = ("document", "passage", "corpus")
        self._passage_prompt = next((p for kind in kinds if (p := prompts.get(kind))), "")

    @property
    def name(self) -> str:
        """Architecture, dimension, digest of the weights, pooling and input limit."""
        return self._name

    @property
    def dim(self) -> int:
        """Length of every vector."""
        return self._dim

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of questions, shape ``(len(texts), dim)``, rows of unit length.

        A question longer than the model's input limit is cut there.
        """
        tokens = self._encoder.tokenize([self._query_prompt + text for text in texts])
        vectors = np.zeros((len(texts), self._dim), dtype=np.float32)
        cuts = [t.ids[: self._encoder.capacity] for t in tokens]
        for done in self._encoder.run(cuts, prompt_tokens=self._length(self._query_prompt)):
            vectors[done.item] = done.pooled
        return _unit(vectors)

    def embed_passages(
        self, passages: Sequence[Passage], sentences: Sequence[Sequence[Sentence]]
    ) -> list[Encoded]:
        """Vectors of passages and of their sentences.

        The passage's vector is that of its head (title and text up to the model's input limit),
        as the model itself cuts it. Sentences beyond it are encoded in further windows.

        Args:
            passages: any number.
            sentences: for each passage its sentences, as offsets into ``Passage.text``.
        """
        heads = [self._passage_prompt + heading(passage) for passage in passages]
        texts = [head + p.text for head, p in zip(heads, passages, strict=True)]
        places = [
            [(len(head) + s.start, len(head) + s.end) for s in of_passage]
            for head, of_passage in zip(heads, sentences, strict=True)
        ]
        tokens = self._encoder.tokenize(texts)
        first = np.cumsum([0, *map(len, places)])
        bounds = [_token_bounds(t, p) for t, p in zip(tokens, places, strict=True)]
        vectors, in_context = self._read_passages(tokens, bounds, first)
        alone = self._read_sentences(
            [text[a:b] for text, p in zip(texts, places, strict=True) for a, b in p]
        )
        mixed = alone
        if self._mean_pooled:
            mixed = _unit(self._alone * alone + (1 - self._alone) * in_context)
        return [
            Encoded(vector=vectors[i], sentence_vectors=mixed[first[i] : first[i + 1]])
            for i in range(len(passages))
        ]

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """One vector a token; a text longer than the model's input limit is read in windows.

        Offsets are code points, whatever the normaliser of the tokenizer does to the text.
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
        return [
            TokenVectors(
                vectors=_unit(np.concatenate([v for _, v in sorted(of_text, key=lambda p: p[0])])),
                ids=t.ids,
                starts=t.starts,
                ends=t.ends,
            )
            for of_text, t in zip(vectors, tokens, strict=True)
        ]

    def _read_passages(
        self, tokens: list[Tokens], bounds: list[NDArray[np.int64]], first: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The passages' vectors, and their sentences' mean token vectors, both of unit length."""
        vectors = np.zeros((len(tokens), self._dim), dtype=np.float32)
        means = np.zeros((int(first[-1]), self._dim), dtype=np.float32)
        windows = [
            window
            for i in range(len(tokens))
            for window in self._cut(i, tokens[i], bounds[i])
            if self._mean_pooled or window.start == 0
        ]
        items = [tokens[w.text].ids[w.start : w.end] for w in windows]
        for done in self._encoder.run(items, prompt_tokens=self._length(self._passage_prompt)):
            window = windows[done.item]
            if window.start == 0:
                vectors[window.text] = done.pooled
            if not self._mean_pooled:
                continue
            owned = np.clip(bounds[window.text], window.start, window.owned) - window.start
            for k, (a, b) in enumerate(owned):
                if a < b:
                    means[first[window.text] + k] += done.tokens[a:b].sum(axis=0)
        return _unit(vectors), _unit(means)

    def _read_sentences(self, sentences: list[str]) -> NDArray[np.float32]:
        """Each sentence's vector by itself, unit length; those too long are read in pieces."""
        tokens = self._encoder.tokenize([self._passage_prompt + s for s in sentences])
        windows = [w for i, t in enumerate(tokens) for w in self._cut(i, t)]
        vectors = np.zeros((len(sentences), self._dim), dtype=np.float32)
        items = [tokens[w.text].ids[w.start : w.end] for w in windows]
        for done in self._encoder.run(items, prompt_tokens=self._length(self._passage_prompt)):
            window = windows[done.item]
            vectors[window.text] += done.pooled * max(window.end - window.start, 1)
        return _unit(vectors)

    def _cut(
        self, text: int, tokens: Tokens, bounds: NDArray[np.int64] | None = None
    ) -> list[Window]:
        starts = [] if bounds is None else bounds[:, 0].tolist()
        length, capacity = len(tokens.ids), self._encoder.capacity
        return cut(text, length, sentence_starts=starts, capacity=capacity)

    def _length(self, prompt: str) -> int:
        return len(self._encoder.tokenize([prompt])[0].ids) if prompt else 0


def _token_bounds(tokens: Tokens, places: list[tuple[int, int]]) -> NDArray[np.int64]:
    """First token and one past the last of each place, shape ``(len(places), 2)``.

    A token belongs to the place in which it starts.
    """
    offsets = np.array(places, dtype=np.int64).reshape(-1, 2)
    return np.searchsorted(tokens.starts, offsets, side="left").astype(np.int64)


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows scaled to unit length; a row of zeros stays one."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: NDArray[np.float32] = vectors / np.maximum(lengths, np.float32(1e-12))
    return unit.astype(np.float32, copy=False)
