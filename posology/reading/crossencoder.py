"""The packaged cross-encoder: one model reads a question together with a text.

Its word embeddings are those of the packaged MiniLM and are not shipped twice: the file has the layers and the heads, in
bytes. How it was trained and what it reaches: ``posology/reading/models/MODEL_CARD.md``.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from posology.index.embedders.sentence_transformer import heading
from posology.reading.pair_model import PairModel
from posology.reading.pairs import Pair, pairs
from posology.types import Excerpt, Reading, Sentence

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: folder of the packaged model
MODELS = Path(__file__).parent / "models"
FILE = "reader.onnx"
#: key of the calibration in the model's metadata
CALIBRATION = "posology.calibration"
#: longest span, tokens
LONGEST_SPAN = 24
#: columns of the tokens' outputs
RELEVANT, START, END = range(3)
#: columns of the texts' outputs
ABSENT, RANK = 0, 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """Lines that turn scores into probabilities, fitted on documents set aside for it."""

    #: slope and offset of a sentence's log-odds
    sentence: tuple[float, float] = (1.0, 0.0)
    #: slope and offset of a passage's log-odds
    passage: tuple[float, float] = (1.0, 0.0)

    def dump(self) -> str:
        """Return it as JSON."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def parse(cls, text: str) -> Calibration:
        """Read what :meth:`dump` wrote."""
        given = json.loads(text)
        return cls(sentence=tuple(given["sentence"]), passage=tuple(given["passage"]))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Scores:
    """The model's raw outputs for one input."""

    #: of each token of the text, columns :data:`RELEVANT`, :data:`START`, :data:`END`; shape ``(m, 3)``, float32
    tokens: NDArray[np.float32]
    #: of the input, columns :data:`ABSENT`, :data:`RANK`; shape ``(2,)``, float32
    text: NDArray[np.float32]


class CrossEncoder:
    """:class:`~posology.seams.PassageReader` by one ONNX model.

    Thread-safe; one forward pass at a time, because a pass uses every core.

    Args:
        model: content of the ONNX file. It takes ``embeddings``, ``attention_mask`` and ``token_type_ids``.
        threads: of a pass; ``None``: one a core.
    """

    def __init__(self, model: bytes, *, threads: int | None = None) -> None:
        self._model = PairModel(model, "crossencoder", threads=threads)
        kept = self._model.metadata.get(CALIBRATION)
        self.calibration = Calibration.parse(kept) if kept else Calibration()

    @classmethod
    def packaged(cls) -> CrossEncoder:
        """Return the packaged model; its file is read once a process."""
        with _LOADING:
            return _packaged()

    @property
    def name(self) -> str:
        """Return its name with the digest of its file."""
        return self._model.name

    def read(self, question: str, excerpts: Sequence[Excerpt]) -> list[Reading]:
        """Read the shown sentences of each excerpt, with its title, for a question. Blocking."""
        shown = [joined(one) for one in excerpts]
        windows = [
            (i, pair)
            for i, (text, spans) in enumerate(shown)
            if spans
            for pair in pairs(question, text, spans, heading=heading(excerpts[i].passage))
        ]
        scores = self.scores([pair for _, pair in windows])
        parts: list[list[tuple[Pair, Scores]]] = [[] for _ in excerpts]
        for (i, pair), one in zip(windows, scores, strict=True):
            parts[i].append((pair, one))
        return [
            self._reading(excerpt, spans, part)
            for excerpt, (_, spans), part in zip(excerpts, shown, parts, strict=True)
        ]

    def scores(self, inputs: Sequence[Pair]) -> list[Scores]:
        """Return the raw outputs of inputs."""
        return [
            Scores(tokens=tokens[one.first : one.first + len(one.sentence)], text=text)
            for one, (tokens, text) in zip(
                inputs, self._model.run(inputs, ("tokens", "texts")), strict=True
            )
        ]

    def _reading(
        self,
        excerpt: Excerpt,
        spans: Sequence[Sentence],
        parts: Sequence[tuple[Pair, Scores]],
    ) -> Reading:
        """Join the windows of an excerpt: a sentence's odds are those over its own window's absence."""
        odds = np.full(len(spans), -np.inf, np.float32)
        passage, best, span = -np.inf, -np.inf, None
        for pair, scores in parts:
            means = sentence_means(pair, scores.tokens[:, RELEVANT], len(spans))
            own = means - scores.text[ABSENT]
            odds = np.fmax(odds, own)
            # as in SQuAD 2.0: the best sentence against "not here"
            passage = max(passage, float(np.nanmax(own, initial=-np.inf)))
            score, found = best_span(pair, scores)
            if found is not None and score > best:
                best, span = score, found
        return Reading(
            sentences=_probability(odds, self.calibration.sentence),
            answers=float(_probability(np.array(passage, np.float32), self.calibration.passage)),
            span=None if span is None else _placed(span, excerpt, spans),
        )


def joined(excerpt: Excerpt) -> tuple[str, list[Sentence]]:
    """Return the shown sentences of an excerpt as one text, and their places in it."""
    spans, pieces, length = [], [], 0
    for sentence in excerpt.sentences:
        words = sentence.of(excerpt.passage.text)
        pieces.append(words)
        spans.append(Sentence(start=length, end=length + len(words)))
        length += len(words) + 1
    return " ".join(pieces), spans


def sentence_means(pair: Pair, values: NDArray[np.float32], sentences: int) -> NDArray[np.float32]:
    """Return the mean of each sentence's tokens, NaN for those without tokens here, shape ``(sentences,)``."""
    inside = pair.sentence >= 0
    at = pair.sentence[inside]
    counts = np.bincount(at, minlength=sentences)
    sums = np.bincount(at, weights=values[inside].astype(np.float64), minlength=sentences)
    with np.errstate(invalid="ignore"):
        means: NDArray[np.float32] = (sums / counts).astype(np.float32)
    return means


def best_span(pair: Pair, scores: Scores) -> tuple[float, tuple[int, int] | None]:
    """Return the score of the best span of the text's own tokens, and its offsets into the text."""
    start = np.where(pair.sentence >= 0, scores.tokens[:, START], -np.inf)
    end = np.where(pair.sentence >= 0, scores.tokens[:, END], -np.inf)
    best, place = -np.inf, None
    for length in range(min(LONGEST_SPAN, len(start))):
        sums = start[: len(start) - length] + end[length:]
        # a span lies in one sentence
        sums = np.where(
            pair.sentence[: len(start) - length] == pair.sentence[length:], sums, -np.inf
        )
        i = int(sums.argmax()) if len(sums) else 0
        if len(sums) and sums[i] > best:
            best, place = float(sums[i]), (int(pair.starts[i]), int(pair.ends[i + length]))
    return best, place


def _placed(span: tuple[int, int], excerpt: Excerpt, spans: Sequence[Sentence]) -> Sentence | None:
    """Return a span of the joined text as offsets into the passage."""
    for own, sentence in zip(spans, excerpt.sentences, strict=True):
        if own.start <= span[0] and span[1] <= own.end:
            shift = sentence.start - own.start
            return Sentence(start=span[0] + shift, end=span[1] + shift)
    return None


def _probability(odds: NDArray[np.float32], line: tuple[float, float]) -> NDArray[np.float32]:
    slope, offset = line
    with np.errstate(over="ignore"):
        found: NDArray[np.float32] = (1 / (1 + np.exp(-(slope * odds + offset)))).astype(np.float32)
    return found


#: it is loaded once, also by threads
_LOADING = threading.Lock()


@cache
def _packaged() -> CrossEncoder:
    return CrossEncoder((MODELS / FILE).read_bytes())
