"""TCRA-LLM, figures 5, 6 and 7: accuracy, entropy and likeness of what is left when words are removed."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from evals import pooled
from evals.papers.bioasq import Bench, Literature, Question, short
from evals.papers.suite import Answered, Asked, Given, Item, Published, Values, by_arm
from evals.papers.tcra.answers import CORPUS, RIGHT, K, asked_of, right
from posology.store.memory import SqliteMemory
from posology.text.sentences import split
from posology.types import Refusal, Retrieval, Retrieved
from prompts.fence import shown
from strategies.compression.tcra_semantic import BARE_NAME, NAME, TcraSemantic
from strategies.compression.wording.words import Words, choose, spans
from strategies.evidence import whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evals.papers.rows import Result

SHARES = (0.4, 0.5, 0.6, 0.7, 0.8)
WHOLE, CHANCE, SEMANTIC, SHIPPED = "whole", "random deletion", "semantic", "semantic, as shipped"
METHODS = (CHANCE, SEMANTIC, SHIPPED)
_WORD = re.compile(r"[^\W_]+")


def arm(method: str, share: float) -> str:
    """Return the name of an arm."""
    return f"{method}, {share:.0%}"


def information(texts: Iterable[str]) -> dict[str, float]:
    """Return the bits of each word by its frequency in all texts (section 5.4)."""
    counts = Counter(word for text in texts for word in words_of(text))
    total = sum(counts.values())
    return {word: -math.log2(count / total) for word, count in counts.items()}


def words_of(text: str) -> list[str]:
    """Return the words of a text, in lower case."""
    return _WORD.findall(text.lower())


@dataclass(frozen=True, kw_only=True, eq=False)
class Laboratory:
    """Removes words from passages, and measures what is left."""

    bench: Bench
    memory: SqliteMemory

    @cached_property
    def bits(self) -> dict[str, float]:
        """Bits of each word of the corpus."""
        return information(self.bench.corpus.texts.values())

    @cached_property
    def _semantic(self) -> Mapping[str, TcraSemantic]:
        return {
            method: TcraSemantic(
                lambda: self.bench.embedder, lambda: self.memory, name=name, guard=guard
            )
            for method, name, guard in ((SEMANTIC, BARE_NAME, False), (SHIPPED, NAME, True))
        }

    def left(self, retrieval: Retrieval, method: str, share: float) -> Retrieval:
        """Return the retrieval with a share of each passage's words, in a row, as the paper shows them."""
        return replace(
            retrieval,
            passages=tuple(self._left(retrieval, one, method, share) for one in retrieval.passages),
        )

    def _left(self, retrieval: Retrieval, one: Retrieved, method: str, share: float) -> Retrieved:
        if method == CHANCE:
            sentences = drawn(one, share)
        else:
            # one passage at a time: the paper's percentile is of one text
            alone = self._semantic[method](replace(retrieval, passages=(one,)), share)
            sentences = [
                " ".join(s.of(one.passage.text) for s in excerpt.sentences)
                for excerpt in alone.excerpts
            ]
        text = " ".join(sentence for sentence in sentences if sentence)
        return replace(one, passage=replace(one.passage, text=text), sentences=split(text))

    def likeness(self, before: Retrieval, after: Retrieval) -> float:
        """Return the mean cosine of passages before and after."""
        pairs = zip(before.passages, after.passages, strict=True)
        texts = [(a.passage.text, b.passage.text) for a, b in pairs if b.passage.text]
        if not texts:
            return 0.0
        vectors = self.bench.embedder.embed_queries(list(chain.from_iterable(texts)))
        return float(np.mean((vectors[0::2] * vectors[1::2]).sum(axis=1)))

    def entropy(self, after: Retrieval) -> float | None:
        """Return the mean bits of a word."""
        words = [w for one in after.passages for w in words_of(one.passage.text)]
        found = [self.bits[word] for word in words if word in self.bits]
        return float(np.mean(found)) if found else None


def drawn(one: Retrieved, share: float) -> list[str]:
    """Return a passage's sentences with words removed at random; the same ones for the same passage."""
    text = one.passage.text
    words = [Words.bare(text, sentence) for sentence in one.sentences]
    rng = np.random.default_rng(int(hashlib.sha256(text.encode()).hexdigest()[:8], 16))
    scores: list[NDArray[np.float32]] = [rng.random(len(w)).astype(np.float32) for w in words]
    kept = choose(words, scores, share)
    return [
        " ".join(span.of(text) for span in spans(text, own, flags))
        for own, flags in zip(words, kept, strict=True)
    ]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Shortened:
    """A question with passages of which some words are left."""

    question: Question
    before: Retrieval
    after: Retrieval
    laboratory: Laboratory


class Removal(Literature):
    """Words removed at random, and by how far they move their sentence's vector."""

    paper = "TCRA-LLM"
    name = "tcra-length"
    title = "right answers, entropy and cosine with 40 to 80 % of the words"
    place = "figures 5, 6 and 7"
    questions = 60
    readers = ("offline",)
    measures = MappingProxyType(
        {
            "right": RIGHT,
            "refused": "share of questions that are refused",
            "held": "share of questions of which the words of an exact answer are left",
            "text": "share of the passages' tokens that is left, as they are shown",
            "entropy": "bits of a word by its frequency in the corpus, mean of the words that are left",
            "cosine": "cosine of a passage's vector to that of what is left of it, mean",
        }
    )
    published = (
        Published(arm=WHOLE, measure="right", value=0.902, of="GPT-3.5-turbo", source="5.2"),
        Published(
            arm=arm(SEMANTIC, 0.8),
            measure="right",
            value=0.886,
            of="GPT-3.5-turbo (1.6 points below the whole text)",
            source="abstract",
        ),
    )
    differences = (
        CORPUS,
        (
            "Three of the six curves of figure 5 are here. Those of summarization (90.6 % fine-tuned, 60 % not) need mT5 and a "
            "language model's training texts (`posology compressor finetune`); that without retrieval (51 %) needs a model's own knowledge."
        ),
        "*As shipped*: numbers, negations and drugs' names stay, and words stay in runs.",
        "The offline reader picks sentences. How a language model reads words in a row needs one: `--reader provider:name`.",
    )

    def items(self, given: Given) -> list[Item]:
        """Return every question by every method at every share, and whole."""
        bench, asked = self.bench(given, short)
        laboratory = Laboratory(bench=bench, memory=SqliteMemory(given.work / "tcra.sqlite"))
        found = bench.retrieve(asked, K, "dense")
        levels = [(WHOLE, 1.0), *((m, share) for share in SHARES for m in METHODS)]
        return [
            Item(
                question=one.id,
                arm=method if method == WHOLE else arm(method, share),
                content=(one, found[one.id], method, share, laboratory),
            )
            for one in asked
            for method, share in levels
        ]

    def asked(self, item: Item) -> Asked:
        """Return an item as a reader is asked."""
        question, before, method, share, laboratory = item.content
        after = before if method == WHOLE else laboratory.left(before, method, share)
        kept = tuple(one for one in after.passages if one.passage.text)
        # spans of the whole passages are not those of what is left
        return replace(asked_of(question, replace(after, passages=kept)), gold={})

    def graded(self, item: Item, asked: Asked, answered: Answered) -> Values:
        """Return the measures of an answer, and of what it was given from."""
        question, before, _, _, laboratory = item.content
        after = asked.task.retrieval
        kept = {one.passage.id for one in after.passages}
        same = replace(
            before, passages=tuple(one for one in before.passages if one.passage.id in kept)
        )
        text = " ".join(one.passage.text for one in after.passages)
        return {
            "right": float(right(question, asked, answered)),
            "refused": float(isinstance(answered.outcome, Refusal)),
            "held": float(pooled.holds(text, question.answers)),
            "text": _tokens(after) / _tokens(before),
            "entropy": laboratory.entropy(after),
            "cosine": laboratory.likeness(same, after),
        }

    def tables(self, rows: Sequence[Result]) -> Iterator[str]:
        """Yield how accuracy goes with entropy and with cosine over the shares of each method."""
        yield from ("", "## Accuracy with entropy and cosine (figures 6 and 7)", "")
        yield "| reader | method | correlation of right with entropy | with cosine |"
        yield "| --- | --- | ---: | ---: |"
        found = by_arm(rows)
        for reader in dict.fromkeys(reader for reader, _ in found):
            for method in METHODS:
                own = [found.get((reader, arm(method, share)), []) for share in SHARES]
                if not all(own):
                    continue
                means = {
                    name: [float(np.mean([r.values[name] or 0.0 for r in of])) for of in own]
                    for name in ("right", "entropy", "cosine")
                }
                cells = " | ".join(
                    correlation(means["right"], means[name]) for name in ("entropy", "cosine")
                )
                yield f"| {reader} | {method} | {cells} |"
        yield ""
        yield f"Over {len(SHARES)} shares each. The paper finds both positive for semantic compression."


def correlation(one: Sequence[float], other: Sequence[float]) -> str:
    """Return Pearson's correlation; a dash if one of them never changes."""
    if not np.std(one) or not np.std(other):
        return "–"
    return f"{np.corrcoef(one, other)[0, 1]:+.2f}"


def _tokens(retrieval: Retrieval) -> int:
    return sum(pooled.counter()(shown(one)) for one in whole(retrieval.passages))
