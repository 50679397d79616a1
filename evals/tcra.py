"""TCRA-LLM's semantic compression against chance, and its approximation against the exact one.

Usage: ``python -m evals.tcra [--data PATH] [--questions N] [--sentences N]``.

As in figures 5, 6 and 7 of the paper. Each SQuAD question is read with its own paragraph, of which 40 to 80 %
of the words are left: by chance, and by the distance that a sentence's vector moves without a word, exact or
of one pass; as the paper has it, and ("kept") with the protection of numbers, negations and drugs' names, and
gaps counted as the marks that they are shown by. A compressed sentence is its words in a row, as the paper
shows them; "shown" is the share of tokens with marks of omission, as a model is shown it. For each: whether the
offline reader's answer holds the gold answer;
cosine of the paragraph's vector to the whole's; bits of a word, by its frequency in the pool of paragraphs.
Differences are to chance of the same guard on the same questions, with 95 % bootstrap intervals. Then
Spearman's rank correlation of the approximate distances with the exact ones, within each of so many sentences of
abstracts of the literature, and seconds for both. What was encoded is kept under the work folder.

What this cannot show: how a language model reads words in a row. The reader here picks sentences by their words'
vectors.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evals import pooled
from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder
from posology.llm.offline.choice import choose as choose_quotes
from posology.llm.offline.scores import SentenceScorer
from posology.store.memory import SqliteMemory
from posology.text.sentences import split
from posology.types import Excerpt, Passage, Sentence
from prompts.fence import shown
from strategies.compression.removal import approximate, exact
from strategies.compression.tcra_semantic import FAST_NAME, NAME, TcraSemantic
from strategies.compression.wording.runs import choose_runs
from strategies.compression.wording.words import Words, choose, spans

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHARES = (0.4, 0.5, 0.6, 0.7, 0.8)
#: name, whether words are protected
METHODS = (
    ("chance", False),
    (NAME, False),
    (FAST_NAME, False),
    ("chance", True),
    (NAME, True),
    (FAST_NAME, True),
)
POOL = "pool.jsonl.gz"
#: words of the shortest and longest sentences whose ranks are compared
_FEWEST, _MOST = 6, 60
_PLAIN = re.compile(r"[^\W_]+")
_BATCH = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Left:
    """What a method left of one paragraph."""

    #: sentences of which anything is left, in order
    sentences: tuple[str, ...]
    #: share of the words
    share: float
    #: share of the tokens, with marks of omission
    shown: float

    @property
    def text(self) -> str:
        """All of it."""
        return " ".join(self.sentences)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Measured:
    """One method at one share, one value a question."""

    share: NDArray[np.float64]
    shown: NDArray[np.float64]
    right: NDArray[np.float64]
    #: whether what is left holds the gold answer, whoever reads it
    held: NDArray[np.float64]
    cosine: NDArray[np.float64]
    bits: NDArray[np.float64]


class Laboratory:
    """Compresses paragraphs, and measures what is left."""

    def __init__(self, embedder: SentenceTransformerEmbedder, work: Path) -> None:
        self._memory = SqliteMemory(work / "tcra.sqlite")
        self._embedder = embedder
        self._encoder = pooled.CachedEncoder(embedder, kept=2_000)
        self._scorer = SentenceScorer(self._encoder)
        self._weigh = {
            NAME: TcraSemantic(lambda: embedder, lambda: self._memory, distances=exact),
            FAST_NAME: TcraSemantic(
                lambda: embedder, lambda: self._memory, distances=approximate, name=FAST_NAME
            ),
        }

    def weights(
        self, method: str, sentences: Sequence[tuple[str, ...]]
    ) -> list[NDArray[np.float32]]:
        """Of each word, by a method that is not chance."""
        return self._weigh[method].weights(sentences)

    def compress(self, text: str, method: str, share: float, *, guard: bool) -> Left:
        """What a method leaves of a paragraph."""
        of = Words.of if guard else Words.bare
        words = [of(text, sentence) for sentence in split(text)]
        if method == "chance":
            rng = np.random.default_rng(int(hashlib.sha256(text.encode()).hexdigest()[:8], 16))
            scores = [rng.random(len(one)).astype(np.float32) for one in words]
        else:
            read = [
                tuple(text[a:b] for a, b in zip(one.starts, one.ends, strict=True)) for one in words
            ]
            scores = self.weights(method, read)
        kept = (choose_runs if guard else choose)(words, scores, share)
        found = [spans(text, one, chosen) for one, chosen in zip(words, kept, strict=True)]
        left = [" ".join(span.of(text) for span in own) for own in found]
        excerpt = Excerpt(passage=Passage(id="p", text=text), sentences=tuple(chain(*found)))
        return Left(
            sentences=tuple(sentence for sentence in left if sentence),
            share=sum(int(one.sum()) for one in kept) / sum(map(len, words)),
            shown=pooled.counter()(shown(excerpt)) / pooled.counter()(text),
        )

    def right(self, questions: Sequence[pooled.Question], left: Sequence[Left]) -> list[bool]:
        """Whether the offline reader's quotes hold a gold answer."""
        self._encoder.token_vectors([q.text for q in questions] + [one.text for one in left])
        return [self._right(q, one) for q, one in zip(questions, left, strict=True)]

    def _right(self, question: pooled.Question, left: Left) -> bool:
        ends = np.cumsum([len(sentence) + 1 for sentence in left.sentences]).tolist()
        whole = tuple(
            Sentence(start=end - 1 - len(sentence), end=end - 1)
            for sentence, end in zip(left.sentences, ends, strict=True)
        )
        passage = Passage(id=question.passage, text=left.text)
        scored = self._scorer(question.text, [Excerpt(passage=passage, sentences=whole)])
        quotes = [one.sentence.of(left.text) for one in choose_quotes(scored, judged=False)]
        return pooled.holds(" ".join(quotes), question.answers)

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Of texts; each is encoded once in its life."""
        keys = [hashlib.sha256(f"{self._embedder.name}\n{t}".encode()).digest() for t in texts]
        known = self._memory.get(keys)
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if new:
            made = self._embedder.embed_queries(list(new.values()))
            fresh = {key: row.tobytes() for key, row in zip(new, made, strict=True)}
            self._memory.put(fresh)
            known |= fresh
        return np.stack([np.frombuffer(known[key], np.float32) for key in keys])


def measure(
    lab: Laboratory,
    questions: Sequence[pooled.Question],
    texts: Sequence[str],
    method: str,
    share: float,
    *,
    guard: bool,
    bits: dict[str, float],
) -> Measured:
    """One method at one share, over all questions."""
    left = [lab.compress(text, method, share, guard=guard) for text in texts]
    cosines = (lab.vectors([one.text for one in left]) * lab.vectors(texts)).sum(axis=1)
    return Measured(
        share=np.array([one.share for one in left]),
        shown=np.array([one.shown for one in left]),
        right=np.array(lab.right(questions, left), dtype=float),
        held=np.array(
            [pooled.holds(one.text, q.answers) for q, one in zip(questions, left, strict=True)],
            dtype=float,
        ),
        cosine=cosines.astype(float),
        bits=np.array([_mean_bits(one.text, bits) for one in left]),
    )


def information(texts: Sequence[str]) -> dict[str, float]:
    """Bits of each word by its frequency in all texts (the paper's section 5.4)."""
    counts = Counter(word for text in texts for word in _PLAIN.findall(text.lower()))
    total = sum(counts.values())
    return {word: -math.log2(count / total) for word, count in counts.items()}


def _mean_bits(text: str, bits: dict[str, float]) -> float:
    found = [bits[word] for word in _PLAIN.findall(text.lower()) if word in bits]
    return sum(found) / len(found) if found else 0.0


def abstracts(data: Path, n: int, seed: int) -> list[tuple[str, ...]]:
    """The words of sentences of as many different abstracts."""
    with gzip.open(data / POOL, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    rng = random.Random(seed)
    rng.shuffle(texts)

    def drawn() -> Iterator[tuple[str, ...]]:
        for text in texts:
            words = [tuple(s.of(text).split()) for s in split(text)]
            if fitting := [one for one in words if _FEWEST <= len(one) <= _MOST]:
                yield rng.choice(fitting)

    found = drawn()
    return [next(found) for _ in range(n)]


def correlations(lab: Laboratory, sentences: Sequence[tuple[str, ...]]) -> NDArray[np.float64]:
    """Spearman's of approximate and exact distances, one a sentence."""
    found: list[float] = []
    for first in range(0, len(sentences), _BATCH):
        batch = sentences[first : first + _BATCH]
        pairs = zip(lab.weights(NAME, batch), lab.weights(FAST_NAME, batch), strict=True)
        found.extend(float(np.corrcoef(_ranks(a), _ranks(b))[0, 1]) for a, b in pairs)
    return np.array(found)


def _ranks(values: NDArray[np.float32]) -> NDArray[np.float64]:
    """From 0; equal values share the mean of their ranks."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    means: NDArray[np.float64] = np.cumsum(counts) - (counts + 1) / 2
    return means[place]


def _table(title: str, rows: dict[tuple[str, bool], dict[float, Measured]]) -> None:
    print(title)
    print(
        f"{'':28}{'left':>6} {'shown':>6} {'right':>24}  {'held':>6}  {'cosine':>24}  {'bits':>5}"
        f"   {'right, over chance':>26}  {'cosine, over chance':>26}"
    )
    for share in SHARES:
        for (method, guard), found in rows.items():
            one, other = found[share], rows["chance", guard][share]
            print(
                f"{share:4.0%} {method:19}{'kept' if guard else '    '}{one.share.mean():6.1%} "
                f"{one.shown.mean():6.1%} "
                f"{pooled.shown(one.right):>24}  {one.held.mean():6.3f}  "
                f"{pooled.shown(one.cosine):>24}  {one.bits.mean():5.2f}",
                end="",
            )
            if method != "chance":
                print(
                    f"   {pooled.shown(one.right - other.right, '+.3f'):>26}  "
                    f"{pooled.shown(one.cosine - other.cosine, '+.3f'):>26}",
                    end="",
                )
            print()


def main() -> int:
    """Print the tables."""
    parser = pooled.arguments("evals.tcra", __doc__, questions=150)
    parser.add_argument("--sentences", type=int, default=500)
    args = parser.parse_args()
    missing = [name for name in (pooled.FILE, POOL) if not (args.data / name).exists()]
    if missing:
        print(f"not here: {', '.join(missing)}", file=sys.stderr)
        return 1
    args.work.mkdir(parents=True, exist_ok=True)
    pool = pooled.open_pool(args.data, args.work)
    lab = Laboratory(pool.embedder, args.work)
    questions = pool.sample("test", args.questions, args.seed)
    held = pool.index.view().fetch(tuple(dict.fromkeys(q.passage for q in questions)))
    by_id = {one.passage.id: one.passage.text for one in held}
    texts = [by_id[q.passage] for q in questions]

    began = time.perf_counter()
    words = list(chain.from_iterable([tuple(s.of(t).split()) for s in split(t)] for t in texts))
    for first in range(0, len(words), _BATCH):
        lab.weights(NAME, words[first : first + _BATCH])
        print(f"\r{first} of {len(words)} sentences", end="", file=sys.stderr, flush=True)
    print(f"\r{len(words)} sentences, {time.perf_counter() - began:.0f} s", file=sys.stderr)
    bits = information(list(by_id.values()))
    rows: dict[tuple[str, bool], dict[float, Measured]] = {}
    for method, guard in METHODS:
        rows[method, guard] = {
            share: measure(lab, questions, texts, method, share, guard=guard, bits=bits)
            for share in SHARES
        }
        print(f"{method} {guard}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    whole = [Left(sentences=tuple(s.of(t) for s in split(t)), share=1.0, shown=1.0) for t in texts]
    right = np.array(lab.right(questions, whole), dtype=float)
    print(f"whole paragraphs: right {pooled.shown(right)}")
    _table(f"{len(questions)} questions, each with its paragraph", rows)

    sentences = abstracts(args.data, args.sentences, args.seed)
    found = correlations(lab, sentences)
    low, middle = np.percentile(found[~np.isnan(found)], [10, 50])
    print(
        f"Spearman's of approximate and exact distances, {len(found)} sentences of abstracts: mean "
        f"{pooled.shown(found[~np.isnan(found)])}, median {middle:.3f}, 10th percentile {low:.3f}"
    )
    sample = sentences[:50]
    for name, distances in ((NAME, exact), (FAST_NAME, approximate)):
        began = time.perf_counter()
        distances(pool.embedder, sample)
        taken = (time.perf_counter() - began) / len(sample)
        print(f"{name}: {1_000 * taken:.1f} ms a sentence that is not known yet")
    return 0


if __name__ == "__main__":
    sys.exit(main())
