"""What is looked at of every sentence: how its tokens, its vector and its neighbours bear on the question."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from strategies.compression.late.codec import LateCodec

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: kinds of questions, by their first question word; the last is for claims, which have none
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
    """What the features have learned."""

    #: inverse passage frequency by vocabulary id, shape ``(vocabulary,)``, float32, above 0
    idf: NDArray[np.float32]
    #: whether a token has a digit, shape ``(vocabulary,)``, bool
    digits: NDArray[np.bool_]
    #: what is looked at in a token, shape ``(hidden, dim)``, float32
    token: NDArray[np.float32]
    #: in the question: its mean token vector, the same weighted by rarity, its kind; ``(2 · dim + 8, hidden)``
    question: NDArray[np.float32]
    #: in what token and question have in common: likeness and sameness, shape ``(2, hidden)``
    echo: NDArray[np.float32]
    #: shape ``(hidden,)`` each: the bias, and what is added up
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
    """Passages of at least one sentence each, as the index keeps them."""

    #: of all tokens, shape ``(tokens, width)``
    codes: NDArray[np.uint8]
    #: tokens of each passage's heading, then of each of its sentences, passage after passage
    counts: NDArray[np.int32]
    #: sentences of each passage, shape ``(passages,)``, at least 1
    sizes: NDArray[np.int64]
    #: of the sentences' vectors with the question's, shape ``(sentences,)``, float32
    cosines: NDArray[np.float32]
    #: of the passages' vectors with the question's, shape ``(passages,)``, float32
    of_passages: NDArray[np.float32]


def kind(question: str) -> NDArray[np.float32]:
    """Which of :data:`KINDS` it is, or a claim: one-hot, shape ``(8,)``."""
    found = np.zeros(len(KINDS) + 1, np.float32)
    words = _WORD.findall(question.lower())
    quantities = {b for a, b in pairwise(words) if a in _OPENERS}
    # "how many" before "how"
    wanted = [(3, quantities), *((i, set(words)) for i in (0, 1, 2, 4, 5))]
    for i, among in wanted:
        if not among.isdisjoint(KINDS[i]):
            found[i] = 1
            return found
    asks = question.rstrip().endswith("?") or (words and words[0] in KINDS[6])
    found[6 if asks else 7] = 1
    return found


def observe(asked: Asked, coded: Coded, codec: LateCodec, weights: Weights) -> NDArray[np.float32]:
    """Features of all sentences, passage after passage, shape ``(sentences, len(NAMES))``, float32."""
    n = len(asked.ids)
    ids = codec.ids(coded.codes)
    products = codec.products(coded.codes, np.concatenate([asked.vectors, weights.token]))
    likeness = products[:, :n]
    same = (ids[:, None] == asked.ids).astype(np.float32)
    best, echoed = likeness.max(axis=1), same.max(axis=1)
    rarity = weights.idf[asked.ids]
    share = rarity / rarity.sum()
    answering = _answering(asked, products[:, n:], best, echoed, share, weights)

    segments = _Segments(coded.counts)
    heads = np.concatenate([[0], np.cumsum(coded.sizes + 1)])[:-1]
    is_head = np.zeros(len(coded.counts), np.bool_)
    is_head[heads] = True
    passage = np.repeat(np.arange(len(coded.sizes)), coded.sizes)
    nearest, exact = segments.max(likeness, -1), segments.max(same, 0)
    heading, exact_heading = nearest[heads][passage], exact[heads][passage]
    nearest, exact = nearest[~is_head], exact[~is_head]
    first = np.concatenate([[0], np.cumsum(coded.sizes)])
    starts, lasts = first[:-1], first[1:] - 1
    before = np.roll(nearest, 1, axis=0)
    before[starts] = -1
    with_heading = np.maximum(nearest, heading)
    order = np.argsort(-rarity, kind="stable")
    rare = weights.idf[ids]
    weight = np.maximum(segments.sum(rare)[~is_head], 1)
    tokens = coded.counts[~is_head].astype(np.float32)
    cosine_before, cosine_after = np.roll(coded.cosines, 1), np.roll(coded.cosines, -1)
    cosine_before[starts], cosine_after[lasts] = 0, 0
    index = np.arange(len(passage)) - starts[passage]
    size = coded.sizes[passage].astype(np.float32)
    answer = segments.max(answering[:, None], -9)[:, 0][~is_head]
    total = segments.sum(np.exp(np.minimum(answering, 8)))[~is_head]
    maxsim = nearest @ share

    def behind(values: NDArray[np.float32]) -> NDArray[np.float32]:
        return values - np.maximum.reduceat(values, starts)[passage]

    columns = [
        nearest.mean(axis=1),
        maxsim,
        with_heading @ share,
        np.maximum(with_heading, before) @ share,
        exact @ share,
        np.maximum(exact, exact_heading) @ share,
        (nearest > 0.5) @ share,
        (nearest > 0.7) @ share,
        nearest[:, order[0]],
        nearest[:, order[min(1, n - 1)]],
        segments.sum(rare * best)[~is_head] / weight,
        coded.cosines,
        cosine_before,
        cosine_after,
        coded.of_passages[passage],
        np.log1p(tokens),
        index == 0,
        index / np.maximum(size - 1, 1),
        np.log(size),
        np.full(len(passage), np.log(n)),
        np.full(len(passage), rarity.mean()),
        behind(maxsim),
        behind(coded.cosines),
        heading @ share,
        (np.maximum.reduceat(nearest, starts, axis=0) @ share)[passage],
        answer,
        np.log(total + 1e-3),
        behind(answer),
        segments.sum(weights.digits[ids])[~is_head] / np.maximum(tokens, 1),
    ]
    kinds = np.broadcast_to(asked.kind, (len(passage), len(asked.kind)))
    return np.column_stack([*columns, kinds]).astype(np.float32)


def _answering(
    asked: Asked,
    products: NDArray[np.float32],
    best: NDArray[np.float32],
    echoed: NDArray[np.float32],
    share: NDArray[np.float32],
    weights: Weights,
) -> NDArray[np.float32]:
    """How far each token is of the sort that the question wants to hear, shape ``(tokens,)``."""
    about = np.concatenate([asked.vectors.mean(axis=0), share @ asked.vectors, asked.kind])
    hidden = products + (about @ weights.question + weights.bias)
    hidden += best[:, None] * weights.echo[0]
    hidden += echoed[:, None] * weights.echo[1]
    np.maximum(hidden, 0, out=hidden)
    found: NDArray[np.float32] = hidden @ weights.out
    return found


class _Segments:
    """Reductions over consecutive stretches of rows, of which some may be empty."""

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
