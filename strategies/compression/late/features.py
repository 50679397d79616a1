"""Features of a sentence: how its tokens, its vector and its neighbours relate to the question."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from strategies.compression.late.codec import LateCodec

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Kinds of questions, by their question word; claims, which have none, are the last kind.
KINDS = (
    ("who", "whom", "whose"),
    ("when",),
    ("where",),
    ("many", "much", "long", "old", "often", "far", "percentage", "year"),
    ("what", "which"),
    ("why", "how"),
    (
        "is",
        "are",
        "was",
        "were",
        "do",
        "does",
        "did",
        "can",
        "could",
        "has",
        "have",
        "should",
        "will",
    ),
)
NAMES = (
    "maxsim",
    "maxsim_idf",
    "maxsim_heading",
    "maxsim_before",
    "exact",
    "exact_heading",
    "near_half",
    "near_most",
    "rarest",
    "second_rarest",
    "reverse",
    "cosine",
    "cosine_before",
    "cosine_after",
    "cosine_passage",
    "tokens",
    "first",
    "place",
    "sentences",
    "asked_tokens",
    "asked_idf",
    "maxsim_to_best",
    "cosine_to_best",
    "heading",
    "coverage",
    "answer",
    "answers",
    "answer_to_best",
    "digits",
    *(f"asks_{kind[0]}" for kind in KINDS),
    "claims",
)
_OPENERS = frozenset({"how", "what", "which"})
_WORD = re.compile(r"[a-z]+")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Weights:
    """Trained weights of the features."""

    #: inverse passage frequency by vocabulary id, shape ``(vocabulary,)``, float32, above 0
    idf: NDArray[np.float32]
    #: whether a token has a digit, shape ``(vocabulary,)``, bool
    digits: NDArray[np.bool_]
    #: weights of a token's vector, shape ``(hidden, dim)``, float32
    token: NDArray[np.float32]
    #: weights of the question's mean token vector, of the same weighted by rarity, and of its kind; shape
    #: ``(2 · dim + 8, hidden)``
    question: NDArray[np.float32]
    #: weights of a token's likeness to the question and of equality with one of its tokens, shape ``(2, hidden)``
    echo: NDArray[np.float32]
    #: bias and output weights, shape ``(hidden,)`` each
    bias: NDArray[np.float32]
    out: NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Asked:
    """A question of at least one token."""

    #: shape ``(tokens, dim)``, float32, rows of unit length
    vectors: NDArray[np.float32]
    #: shape ``(tokens,)``
    ids: NDArray[np.int64]
    #: see :func:`kind`, shape ``(8,)``
    kind: NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Coded:
    """Passages as the index stores them; each has at least one sentence."""

    #: codes of all tokens, shape ``(tokens, width)``
    codes: NDArray[np.uint8]
    #: tokens of each passage's heading, then of each of its sentences, passage after passage
    counts: NDArray[np.int32]
    #: sentences of each passage, shape ``(passages,)``, at least 1
    sizes: NDArray[np.int64]
    #: cosines of the sentences' vectors with the question's, shape ``(sentences,)``, float32
    cosines: NDArray[np.float32]
    #: cosines of the passages' vectors with the question's, shape ``(passages,)``, float32
    of_passages: NDArray[np.float32]


def kind(question: str) -> NDArray[np.float32]:
    """Return the question's kind, one of :data:`KINDS` or a claim, one-hot, shape ``(8,)``."""
    one_hot = np.zeros(len(KINDS) + 1, np.float32)
    words = _WORD.findall(question.lower())
    quantities = {b for a, b in pairwise(words) if a in _OPENERS}
    # "how many" before "how"
    wanted = [(3, quantities), *((i, set(words)) for i in (0, 1, 2, 4, 5))]
    for i, among in wanted:
        if not among.isdisjoint(KINDS[i]):
            one_hot[i] = 1
            return one_hot
    asks = question.rstrip().endswith("?") or (words and words[0] in KINDS[6])
    one_hot[6 if asks else 7] = 1
    return one_hot


def observe(asked: Asked, coded: Coded, codec: LateCodec, weights: Weights) -> NDArray[np.float32]:
    """Return the features of all sentences, passage after passage, shape ``(sentences, len(NAMES))``, float32."""
    n = len(asked.ids)
    ids = codec.ids(coded.codes)
    products = codec.products(coded.codes, np.concatenate([asked.vectors, weights.token]))
    likeness = products[:, :n]
    same = (ids[:, None] == asked.ids).astype(np.float32)
    best, echoed = likeness.max(axis=1), same.max(axis=1)
    rarity = weights.idf[asked.ids]
    answering = _answering(asked, products[:, n:], best, echoed, rarity / rarity.sum(), weights)
    rows = _Rows(coded)
    rare = weights.idf[ids]
    columns = {
        **_matches(likeness, same, rarity, rows),
        **_cosines(coded, rows),
        **_extents(rows),
        **_answers(answering, rows),
        "reverse": rows.sum(rare * best) / np.maximum(rows.sum(rare), 1),
        "asked_tokens": np.full(len(rows.passage), np.log(n)),
        "asked_idf": np.full(len(rows.passage), rarity.mean()),
        "digits": rows.sum(weights.digits[ids]) / np.maximum(rows.tokens, 1),
    }
    kinds = np.broadcast_to(asked.kind, (len(rows.passage), len(asked.kind)))
    named = [columns[name] for name in NAMES[: -len(asked.kind)]]
    return np.column_stack([*named, kinds]).astype(np.float32)


def _matches(
    likeness: NDArray[np.float32],
    same: NDArray[np.float32],
    rarity: NDArray[np.float32],
    rows: _Rows,
) -> dict[str, NDArray[Any]]:
    """Compare the question's tokens with each sentence's, with its heading's and with the sentence before."""
    share = rarity / rarity.sum()
    nearest, exact = rows.segments.max(likeness, -1), rows.segments.max(same, 0)
    heading, exact_heading = nearest[rows.heads][rows.passage], exact[rows.heads][rows.passage]
    nearest, exact = nearest[rows.body], exact[rows.body]
    before = np.roll(nearest, 1, axis=0)
    before[rows.starts] = -1
    with_heading = np.maximum(nearest, heading)
    order = np.argsort(-rarity, kind="stable")
    maxsim = nearest @ share
    return {
        "maxsim": nearest.mean(axis=1),
        "maxsim_idf": maxsim,
        "maxsim_heading": with_heading @ share,
        "maxsim_before": np.maximum(with_heading, before) @ share,
        "exact": exact @ share,
        "exact_heading": np.maximum(exact, exact_heading) @ share,
        "near_half": (nearest > 0.5) @ share,
        "near_most": (nearest > 0.7) @ share,
        "rarest": nearest[:, order[0]],
        "second_rarest": nearest[:, order[min(1, len(order) - 1)]],
        "maxsim_to_best": rows.behind(maxsim),
        "heading": heading @ share,
        "coverage": (np.maximum.reduceat(nearest, rows.starts, axis=0) @ share)[rows.passage],
    }


def _cosines(coded: Coded, rows: _Rows) -> dict[str, NDArray[Any]]:
    """Return the cosines of each sentence, its neighbours and its passage with the question."""
    before, after = np.roll(coded.cosines, 1), np.roll(coded.cosines, -1)
    before[rows.starts], after[rows.lasts] = 0, 0
    return {
        "cosine": coded.cosines,
        "cosine_before": before,
        "cosine_after": after,
        "cosine_passage": coded.of_passages[rows.passage],
        "cosine_to_best": rows.behind(coded.cosines),
    }


def _extents(rows: _Rows) -> dict[str, NDArray[Any]]:
    """Return the length of each sentence and its place in its passage."""
    index = np.arange(len(rows.passage)) - rows.starts[rows.passage]
    size = rows.sizes[rows.passage].astype(np.float32)
    return {
        "tokens": np.log1p(rows.tokens),
        "first": index == 0,
        "place": index / np.maximum(size - 1, 1),
        "sentences": np.log(size),
    }


def _answers(answering: NDArray[np.float32], rows: _Rows) -> dict[str, NDArray[Any]]:
    """Summarise per sentence how likely its tokens are of the answer's kind."""
    answer = rows.segments.max(answering[:, None], -9)[:, 0][rows.body]
    total = rows.sum(np.exp(np.minimum(answering, 8)))
    return {
        "answer": answer,
        "answers": np.log(total + 1e-3),
        "answer_to_best": rows.behind(answer),
    }


def _answering(
    asked: Asked,
    products: NDArray[np.float32],
    best: NDArray[np.float32],
    echoed: NDArray[np.float32],
    share: NDArray[np.float32],
    weights: Weights,
) -> NDArray[np.float32]:
    """Score how likely each token is of the kind that answers the question, shape ``(tokens,)``."""
    about = np.concatenate([asked.vectors.mean(axis=0), share @ asked.vectors, asked.kind])
    hidden = products + (about @ weights.question + weights.bias)
    hidden += best[:, None] * weights.echo[0]
    hidden += echoed[:, None] * weights.echo[1]
    np.maximum(hidden, 0, out=hidden)
    found: NDArray[np.float32] = hidden @ weights.out
    return found


class _Rows:
    """Return the token spans of headings and sentences, with their passages."""

    def __init__(self, coded: Coded) -> None:
        self.segments = _Segments(coded.counts)
        #: sentences of each passage
        self.sizes = coded.sizes
        first = np.concatenate([[0], np.cumsum(coded.sizes)])
        #: first and last sentence of each passage
        self.starts, self.lasts = first[:-1], first[1:] - 1
        #: passage of each sentence
        self.passage = np.repeat(np.arange(len(coded.sizes)), coded.sizes)
        #: stretch of each passage's heading
        self.heads = np.concatenate([[0], np.cumsum(coded.sizes + 1)])[:-1]
        #: whether a stretch is a sentence
        self.body = np.ones(len(coded.counts), np.bool_)
        self.body[self.heads] = False
        #: tokens of each sentence
        self.tokens = coded.counts[self.body].astype(np.float32)

    def sum(self, values: NDArray[Any]) -> NDArray[np.float32]:
        return self.segments.sum(values)[self.body]

    def behind(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the difference of each sentence to the best of its passage."""
        return values - np.maximum.reduceat(values, self.starts)[self.passage]


class _Segments:
    """Reductions over consecutive stretches of rows; some may be empty."""

    def __init__(self, counts: NDArray[np.int32]) -> None:
        self._filled = counts > 0
        # an empty stretch would be given the row after it
        self._starts = (np.cumsum(counts) - counts)[self._filled]

    def max(self, rows: NDArray[np.float32], empty: float) -> NDArray[np.float32]:
        found = np.full((len(self._filled), rows.shape[1]), empty, np.float32)
        if len(self._starts):
            found[self._filled] = np.maximum.reduceat(rows, self._starts, axis=0)
        return found

    def sum(self, values: NDArray[Any]) -> NDArray[np.float32]:
        found = np.zeros(len(self._filled), np.float32)
        if len(self._starts):
            found[self._filled] = np.add.reduceat(values.astype(np.float32), self._starts)
        return found
