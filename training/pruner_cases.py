"""Cases of the pruner: questions, passages and gold sentences, for training and evaluation.

Four sets: SQuAD 1.1 (with the unanswerable questions of 2.0 about the same paragraphs), SciFact's rationales, the
spans of Evidence Inference, CovidQA. Each is split by document: 15 % test, 15 % dev (for choices), the rest training.
No passage of a test document is in a training case, not even as a distractor.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder, heading
from posology.index.search.bm25 import tokenise
from posology.text.sentences import split
from posology.types import Passage, Sentence
from training.gold import rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

SQUAD = "squad11_dev_part1.jsonl.gz"
UNANSWERABLE = "squad20_dev_part.jsonl.gz"
POOL = "pool.jsonl.gz"
POOL_VECTORS = "pool.minilm.f16.npy"
CLAIMS = "scifact_claims_train.jsonl.gz"
#: Share of the documents for test, and again for dev.
ASIDE = 0.15
#: Retrieved distractors a question.
DISTRACTORS = 4
PARTS = ("train", "dev", "test")
_Row = TypeVar("_Row")
_GLUED = re.compile(r"(?<=[\w%)\]][.?!])(?=[A-Z])")


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A question with passages and their gold sentences."""

    #: name of its set
    origin: str
    #: ``train``, ``dev`` or ``test``
    part: str
    question: str
    #: numbers of its passages in the bank, the gold one first if there is one
    passages: tuple[int, ...]
    #: gold sentences of each passage
    gold: tuple[frozenset[int], ...]
    #: kind of each passage: ``gold``, ``hard`` (retrieved), ``random``, ``none`` (the question has no answer)
    kinds: tuple[str, ...]
    #: spans of the answers in the gold passage's text, if known
    spans: tuple[tuple[int, int], ...] = ()


@dataclass(kw_only=True, slots=True)
class Texts:
    """Distinct passages to encode."""

    passages: list[Passage] = field(default_factory=list)
    sentences: list[tuple[Sentence, ...]] = field(default_factory=list)
    _known: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, title: str, text: str) -> int:
        """Add a passage and return its number."""
        key = (title, text)
        if key not in self._known:
            self._known[key] = len(self.passages)
            self.passages.append(Passage(id=f"p:{len(self.passages)}", title=title, text=text))
            self.sentences.append(split(text))
        return self._known[key]


class Words:
    """BM25 over many texts, as sums of sparse columns."""

    def __init__(self, texts: Iterable[str], k: float = 1.5, b: float = 0.75) -> None:
        from scipy.sparse import csc_matrix  # type: ignore[import-untyped]

        self._terms: dict[str, int] = {}
        rows, columns, counts, lengths = [], [], [], []
        for row, text in enumerate(texts):
            tokens = tokenise(text)
            lengths.append(len(tokens))
            for term, count in Counter(tokens).items():
                rows.append(row)
                columns.append(self._terms.setdefault(term, len(self._terms)))
                counts.append(count)
        tf = np.array(counts, np.float32)
        length = np.array(lengths, np.float32)
        column = np.array(columns)
        df = np.bincount(column, minlength=len(self._terms))
        idf = np.log1p((len(lengths) - df + 0.5) / (df + 0.5)).astype(np.float32)
        norm = k * (1 - b + b * length / max(length.mean(), 1))
        weights = idf[column] * tf * (k + 1) / (tf + norm[np.array(rows)])
        self._matrix = csc_matrix((weights, (rows, column)), (len(lengths), len(self._terms)))

    def scores(self, question: str) -> NDArray[np.float32]:
        """Return one score a text."""
        columns = [self._terms[t] for t in set(tokenise(question)) if t in self._terms]
        if not columns:
            return np.zeros(self._matrix.shape[0], np.float32)
        total = self._matrix[:, columns].sum(axis=1)
        return np.asarray(total, np.float32).ravel()


def part_of(document: str) -> str:
    """Return the part of a document, from a hash of its name."""
    place = int(hashlib.sha256(f"pruner:{document}".encode()).hexdigest()[:8], 16) / 2**32
    return "test" if place < ASIDE else "dev" if place < 2 * ASIDE else "train"


def alone(
    of: Sequence[_Row],
    part: str,
    *,
    named: Callable[[_Row], str],
    texts: Callable[[_Row], Iterable[str]],
) -> list[_Row]:
    """Return the rows of a part that share no text with rows of another.

    Args:
        of: rows of a set that is split by something else than its texts, which rows share: by claim, or by question.
        part: ``train``, ``dev`` or ``test``.
        named: what a row is split by.
        texts: the texts of a row, or their names.
    """
    parts_of = [part_of(named(row)) for row in of]
    elsewhere = {
        text for row, own in zip(of, parts_of, strict=True) if own != part for text in texts(row)
    }
    return [
        row
        for row, own in zip(of, parts_of, strict=True)
        if own == part and elsewhere.isdisjoint(texts(row))
    ]


def parts(weights: dict[str, int]) -> dict[str, str]:
    """Return the parts of a few documents of unequal size, filled to their shares in the order of digests."""
    total, filled, found = sum(weights.values()), 0, {}
    for name in sorted(weights, key=lambda n: hashlib.sha256(f"pruner:{n}".encode()).digest()):
        share = filled / total
        found[name] = "test" if share < ASIDE else "dev" if share < 2 * ASIDE else "train"
        filled += weights[name]
    return found


def fused(scores: Sequence[NDArray[np.float32]], depth: int = 100, k: int = 10) -> list[int]:
    """Fuse rankings by reciprocal ranks as the index does (decision 0004), best first."""
    total: dict[int, float] = {}
    for one in scores:
        best = np.argsort(-one, kind="stable")[:depth]
        for rank, i in enumerate(best.tolist(), start=1):
            if one[i] > 0:
                total[i] = total.get(i, 0.0) + 1 / (k + rank)
    return sorted(total, key=lambda i: (-total[i], i))


def squad(
    data: Path, embedder: SentenceTransformerEmbedder, seed: int = 0
) -> tuple[Texts, list[Case]]:
    """Return SQuAD's cases: gold sentences, retrieved distractors, reshaped paragraphs, unanswerable questions."""
    rng = random.Random(seed)
    paragraphs = rows(data / SQUAD)
    sizes = Counter(row["title"] for row in paragraphs)
    part = parts(dict(sizes))
    texts = Texts()
    number = [texts.add(article_title(row), row["context"]) for row in paragraphs]
    by_context = {row["context"]: i for i, row in enumerate(paragraphs)}
    questions: list[tuple[int, str, list[tuple[int, int]]]] = []
    for i, row in enumerate(paragraphs):
        for qa in row["qas"]:
            spans = [(a["answer_start"], a["answer_start"] + len(a["text"])) for a in qa["answers"]]
            questions.append((i, qa["question"], sorted(spans)))
    for row in rows(data / UNANSWERABLE):
        i = by_context[row["context"]]
        questions.extend((i, qa["question"], []) for qa in row["qas"] if qa["is_impossible"])
    passages = [texts.passages[n] for n in number]
    whole = embedder.embed_passages(passages, [()] * len(passages))
    vectors = np.stack([one.vector for one in whole])
    asked = embedder.embed_queries([q for _, q, _ in questions])
    words = Words(heading(p) + p.text for p in passages)
    own = {
        p: [i for i, row in enumerate(paragraphs) if part[row["title"]] == p]
        for p in ("train", "dev", "test")
    }
    cases = []
    for (i, question, spans), vector in zip(questions, asked, strict=True):
        where = part[paragraphs[i]["title"]]
        # training cases use training paragraphs only; others use all
        mask = np.zeros(len(paragraphs), np.bool_)
        mask[own["train"] if where == "train" else range(len(paragraphs))] = True
        mask[i] = False
        dense = np.where(mask, vectors @ vector, -1).astype(np.float32)
        hard = fused([dense, np.where(mask, words.scores(question), 0)])[:DISTRACTORS]
        others = [j for j in own[where] if j != i and j not in hard]
        gold = _bearing(texts.sentences[number[i]], spans)
        chosen = [(number[i], gold, "gold" if spans else "none")]
        chosen += [(number[j], frozenset(), "hard") for j in hard]
        chosen += [(number[j], frozenset(), "random") for j in rng.sample(others, 2)]
        if where == "train" and spans:
            chosen += _reshaped(texts, paragraphs, i, spans, rng)
        case = make_case("squad" if spans else "squad2", where, question, chosen)
        cases.append(replace(case, spans=tuple(dict.fromkeys(spans))))
    return texts, cases


def _reshaped(
    texts: Texts,
    paragraphs: list[dict[str, Any]],
    i: int,
    spans: list[tuple[int, int]],
    rng: random.Random,
) -> list[tuple[int, frozenset[int], str]]:
    """Cut the gold paragraph to a few of its sentences, or join it with its neighbour.

    Each paragraph has only a few shapes, to limit encoding.
    """
    row, context = paragraphs[i], paragraphs[i]["context"]
    sentences = split(context)
    shape = random.Random(f"{context[:50]}{rng.randrange(2)}")
    if shape.random() < 0.5 and len(sentences) > 1:
        length = shape.randint(1, len(sentences) - 1)
        first = shape.randint(0, len(sentences) - length)
        start, end = sentences[first].start, sentences[first + length - 1].end
        text = context[start:end]
        moved = [(a - start, b - start) for a, b in spans if a >= start and b <= end]
    else:
        beside = next(
            (
                paragraphs[j]
                for j in (i + 1, i - 1)
                if 0 <= j < len(paragraphs) and paragraphs[j]["title"] == row["title"]
            ),
            None,
        )
        if beside is None:
            return []
        before = shape.random() < 0.5
        text = f"{beside['context']} {context}" if before else f"{context} {beside['context']}"
        start = -len(beside["context"]) - 1 if before else 0
        moved = [(a - start, b - start) for a, b in spans]
    n = texts.add(article_title(row), text)
    return [(n, _bearing(texts.sentences[n], moved), "gold" if moved else "none")]


def article_title(row: dict[str, Any]) -> str:
    """Return the title of a SQuAD article."""
    return str(row["title"]).replace("_", " ")


def _bearing(sentences: Sequence[Sentence], spans: Sequence[tuple[int, int]]) -> frozenset[int]:
    """Return the sentences in which most of the answers begin."""
    votes = Counter(k for a, _ in spans for k, s in enumerate(sentences) if s.start <= a < s.end)
    most = max(votes.values(), default=0)
    return frozenset(k for k, n in votes.items() if n == most)


def marked(sentences: Sequence[Sentence], spans: Sequence[tuple[int, int]]) -> frozenset[int]:
    """Return the sentences in which any of the spans begins."""
    return frozenset().union(*(_bearing(sentences, [span]) for span in spans))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Abstracts:
    """The pool with its vectors and BM25."""

    rows: list[dict[str, Any]]
    vectors: NDArray[np.float32]
    words: Words
    place: dict[str, int]

    @classmethod
    def load(cls, data: Path) -> Abstracts:
        """Load the pool, in half a minute."""
        found = rows(data / POOL)
        return cls(
            rows=found,
            vectors=np.load(data / POOL_VECTORS).astype(np.float32),
            words=Words(f"{r.get('title') or ''}. {r['text']}" for r in found),
            place={row["id"]: i for i, row in enumerate(found)},
        )

    def ranked(
        self, question: str, vector: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return inner products and BM25 scores."""
        return self.vectors @ vector, self.words.scores(question)


def scifact(
    data: Path, pool: Abstracts, texts: Texts, embedder: SentenceTransformerEmbedder, seed: int = 0
) -> list[Case]:
    """Return SciFact's cases: claims with their rationales and four retrieved abstracts."""
    rng = random.Random(seed)
    claims = [c for c in rows(data / CLAIMS) if c["evidence"]]
    asked = embedder.embed_queries([c["claim"] for c in claims])
    cases = []
    for claim, vector in zip(claims, asked, strict=True):
        golds = [f"scifact:{d}" for d in claim["evidence"] if f"scifact:{d}" in pool.place]
        wheres = {part_of(d) for d in golds}
        if len(wheres) != 1:
            continue
        where = wheres.pop()
        chosen: list[tuple[int, frozenset[int], str]] = []
        for doc in golds:
            row = pool.rows[pool.place[doc]]
            wanted = {
                n for group in claim["evidence"][doc.split(":")[1]]["sentences"] for n in group
            }
            n = texts.add(row.get("title") or "", row["text"])
            starts = fine_starts(row["text"], texts.sentences[n])
            if wanted and max(wanted) < len(starts):
                spans = [(starts[w], starts[w] + 1) for w in wanted]
                chosen.append((n, marked(texts.sentences[n], spans), "gold"))
        if not chosen:
            continue
        cited = {f"scifact:{d}" for d in claim["cited_doc_ids"]} | set(golds)
        for i in fused(pool.ranked(claim["claim"], vector)):
            row = pool.rows[i]
            if row["id"] in cited or (where == "train" and part_of(row["id"]) != "train"):
                continue
            chosen.append((texts.add(row.get("title") or "", row["text"]), frozenset(), "hard"))
            if sum(kind == "hard" for _, _, kind in chosen) == DISTRACTORS:
                break
        chosen += strangers(pool, texts, where, rng, 1)
        cases.append(make_case("scifact", where, claim["claim"], chosen))
    return cases


def fine_starts(text: str, sentences: Sequence[Sentence]) -> list[int]:
    """Return the starts of SciFact's own sentences, some of which lack a space and are one to our splitter."""
    return [
        s.start + begin
        for s in sentences
        for begin in (0, *(m.start() for m in _GLUED.finditer(text[s.start : s.end])))
    ]


def strangers(
    pool: Abstracts, texts: Texts, where: str, rng: random.Random, n: int
) -> list[tuple[int, frozenset[int], str]]:
    """Draw random passages of the pool for a question."""
    found: list[tuple[int, frozenset[int], str]] = []
    while len(found) < n:
        # a few hundred serve all questions, to limit encoding
        row = pool.rows[rng.randrange(300) * 97 % len(pool.rows)]
        if row["source"] != "pubmedqa" and (part_of(row["id"]) == "train") == (where == "train"):
            found.append((texts.add(row.get("title") or "", row["text"]), frozenset(), "random"))
    return found


def make_case(
    origin: str, part: str, question: str, chosen: Sequence[tuple[int, frozenset[int], str]]
) -> Case:
    """Return a case from its passages: number, gold sentences, kind."""
    return Case(
        origin=origin,
        part=part,
        question=question,
        passages=tuple(n for n, _, _ in chosen),
        gold=tuple(g for _, g, _ in chosen),
        kinds=tuple(k for _, _, k in chosen),
    )
