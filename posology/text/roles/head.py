"""Roles of sentences, by a small network over their vectors, words and places, with numpy alone.

Each sentence becomes a hidden vector; two convolutions see the two sentences on each side, twice; a chain of transitions
weighs the order of roles (Lafferty et al. 2001, conditional random fields). Headings restrict the roles of what stands
under them. Figures: ``posology/text/data/MODEL_CARD.md``.
"""

from __future__ import annotations

import hashlib
import io
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from posology.text.roles.headings import stated
from posology.types import Sentence, SentenceRole

if TYPE_CHECKING:
    from numpy.typing import NDArray

FILE = Path(__file__).parents[1] / "data" / "sentence-roles.npz"
ROLES = tuple(SentenceRole)
#: sentences on each side that one convolution sees
BESIDE = 2
#: rows of the table of words; two words may share one
WORDS = 1 << 15
#: numbers of :func:`places`
PLACES = 12

_TOKEN = re.compile(r"[a-z]+|\d+(?:[.,]\d+)*|[%=<>±]")
#: a role that a heading rules out
_NEVER = np.float32(-1e4)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Told:
    """Input of a head beside the vectors of a text's n sentences."""

    #: shape ``(n, PLACES)``, float32
    places: NDArray[np.float32]
    #: rows of the table of words, of each sentence
    words: tuple[NDArray[np.int64], ...]
    #: whether headings allow each role, shape ``(n, 5)``
    allowed: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RoleHead:
    """Tells the roles of sentences. Thread-safe; about a millisecond an abstract."""

    #: digest of its file
    name: str
    #: name of the embedder of the vectors that it reads
    embedder: str
    #: float32, by name: see :meth:`scores`
    weights: Mapping[str, NDArray[np.float32]]

    @classmethod
    def read(cls, file: Path) -> RoleHead:
        """Read a file of :func:`dump`.

        Raises:
            OSError: it cannot be read.
            ValueError: it is no such file.
        """
        content = file.read_bytes()
        with np.load(io.BytesIO(content), allow_pickle=False) as found:
            arrays = dict(found)
        if missing := {"embedder", "words", "scales", "chain"} - arrays.keys():
            raise ValueError(f"{file} is no head for roles: it lacks {', '.join(sorted(missing))}")
        embedder = str(arrays.pop("embedder"))
        arrays["words"] = arrays["words"] * arrays.pop("scales").astype(np.float32)
        return cls(
            name=hashlib.sha256(content).hexdigest()[:12],
            embedder=embedder,
            weights={name: array.astype(np.float32) for name, array in arrays.items()},
        )

    def __call__(
        self,
        text: str,
        sentences: Sequence[Sentence],
        vectors: NDArray[np.int8],
        section: str | None = None,
    ) -> tuple[SentenceRole, ...]:
        """Return the most probable role of each sentence.

        Args:
            text: a passage's.
            sentences: of the text, in order.
            vectors: of the sentences, shape ``(len(sentences), dim)``: cosine times 127.
            section: heading of the part of an article that the passage is; ``None``: none.
        """
        if not len(sentences):
            return ()
        told = tell(text, sentences, section)
        best = self.probabilities(told, vectors).argmax(axis=1)
        return tuple(ROLES[place] for place in best.tolist())

    def probabilities(self, told: Told, vectors: NDArray[np.int8]) -> NDArray[np.float32]:
        """Return the probability of each role, shape ``(n, 5)``, rows with sum 1."""
        scores = np.where(told.allowed, self.scores(told, vectors), _NEVER)
        chain, ends = self.weights["chain"], self.weights["ends"]
        before = np.empty_like(scores)
        after = np.empty_like(scores)
        before[0], after[-1] = scores[0] + ends[0], ends[1]
        for i in range(1, len(scores)):
            before[i] = scores[i] + _log_sum(before[i - 1][:, None] + chain)
        for i in range(len(scores) - 2, -1, -1):
            after[i] = _log_sum((chain + scores[i + 1] + after[i + 1]).T)
        total = before + after
        odds = np.exp(total - total.max(axis=1, keepdims=True))
        found: NDArray[np.float32] = odds / odds.sum(axis=1, keepdims=True)
        return found

    def scores(self, told: Told, vectors: NDArray[np.int8]) -> NDArray[np.float32]:
        """Return scores of the roles before the chain weighs them, shape ``(n, 5)``."""
        weights = self.weights
        hidden: NDArray[Any] = (vectors.astype(np.float32) / np.float32(127)) @ weights["vector"]
        hidden += told.places @ weights["place"] + weights["bias"]
        for i, rows in enumerate(told.words):
            if len(rows):
                hidden[i] += weights["words"][rows].sum(axis=0) / np.sqrt(np.float32(len(rows)))
        hidden = np.maximum(hidden, 0)
        for layer in ("first", "second"):
            seen = _windows(hidden) @ weights[layer] + weights[f"{layer}_bias"]
            hidden = hidden + np.maximum(seen, 0)
        found: NDArray[np.float32] = hidden @ weights["out"] + weights["out_bias"]
        return found


def dump(embedder: str, weights: Mapping[str, NDArray[np.float32]]) -> bytes:
    """Return a file: the words in 8 bits with a scale a row, all else in 16 bits; without times, so equal heads are equal."""
    words = weights["words"]
    scales = np.maximum(np.abs(words).max(axis=1, keepdims=True), 1e-9) / 127
    small: dict[str, Any] = {
        name: array.astype(np.float16) for name, array in weights.items() if name != "words"
    }
    file = io.BytesIO()
    np.savez_compressed(
        file,
        embedder=embedder,
        words=np.rint(words / scales).astype(np.int8),
        scales=scales.astype(np.float32),
        **small,
    )
    return file.getvalue()


def head_of(embedder: str) -> RoleHead | None:
    """Return the packaged head for an embedder's vectors; ``None``: there is none."""
    head = _packaged()
    return head if head.embedder == embedder else None


@cache
def _packaged() -> RoleHead:
    return RoleHead.read(FILE)


def tell(text: str, sentences: Sequence[Sentence], section: str | None = None) -> Told:
    """Return what a head reads of a text beside the vectors; see :meth:`RoleHead.__call__`."""
    said = stated(text, sentences, section)
    own = [text[one.start : s.end] for one, s in zip(said, sentences, strict=True)]
    tokens = [_TOKEN.findall(words.lower()) for words in own]
    return Told(
        places=places(own, [len(found) for found in tokens]),
        words=tuple(word_rows(found) for found in tokens),
        allowed=np.array(
            [[not one.allowed or role in one.allowed for role in ROLES] for one in said], np.bool_
        ).reshape(-1, len(ROLES)),
    )


def places(sentences: Sequence[str], counts: Sequence[int]) -> NDArray[np.float32]:
    """Return the place of each sentence among all, its length and its numbers, shape ``(n, PLACES)``.

    Args:
        sentences: their words.
        counts: number of words in each.
    """
    n = len(sentences)
    place = np.arange(n, dtype=np.float32)
    last = n - 1 - place
    digits = np.array([sum(map(str.isdigit, one)) for one in sentences], np.float32)
    columns = [
        place / max(n - 1, 1),
        np.minimum(place, 10) / 10,
        np.minimum(last, 10) / 10,
        np.full(n, min(n, 20) / 20, np.float32),
        place == 0,
        place == 1,
        last == 0,
        last == 1,
        np.log1p(np.array(counts, np.float32)) / 4,
        np.log1p(digits) / 3,
        [one.count("%") > 0 for one in sentences],
        [one.count("=") + one.count("<") > 0 for one in sentences],
    ]
    return np.stack([np.asarray(column, np.float32) for column in columns], axis=1)


def word_rows(tokens: Sequence[str]) -> NDArray[np.int64]:
    """Return the rows of a sentence's words and pairs of words in the table of words; numbers are one word."""
    words = ["<", *("0" if token[0].isdigit() else token for token in tokens)]
    pairs = [f"{a} {b}" for a, b in pairwise(words)]
    return np.array([zlib.crc32(one.encode()) % WORDS for one in words[1:] + pairs], np.int64)


def _windows(hidden: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return each row beside those around it, shape ``(n, (2 * BESIDE + 1) * width)``; zeros beyond the ends."""
    padded = np.pad(hidden, ((BESIDE, BESIDE), (0, 0)))
    n = len(hidden)
    return np.concatenate([padded[k : k + n] for k in range(2 * BESIDE + 1)], axis=1)


def _log_sum(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the logarithm of the sum of exponentials over the first axis."""
    most = values.max(axis=0)
    found: NDArray[np.float32] = most + np.log(np.exp(values - most).sum(axis=0))
    return found
