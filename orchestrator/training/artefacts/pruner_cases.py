"""What the pruner is trained and measured on: questions, passages with their vectors, and gold sentences.

Four sets with sentences that bear an answer: SQuAD 1.1 (with the unanswerable questions of 2.0 about the
same paragraphs), SciFact's rationales, the spans of Evidence Inference, CovidQA. Each is parted by
document: of every set 15 % are kept aside ("test"), 15 % are what choices are made on ("dev"), the
rest is trained on. No passage of a document kept aside is in a training case, not even as a distractor.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from orchestrator.training.artefacts.gold import rows
from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder, heading
from posology.index.search.bm25 import tokenise
from posology.text.sentences import split
from posology.types import Passage, Sentence

if TYPE_CHECKING:
    from numpy.typing import NDArray

SQUAD = "squad11_dev_part1.jsonl.gz"
UNANSWERABLE = "squad20_dev_part.jsonl.gz"
POOL = "pool.jsonl.gz"
POOL_VECTORS = "pool.minilm.f16.npy"
CLAIMS = "scifact_claims_train.jsonl.gz"
#: of the documents, kept aside, and as much again to make choices on
ASIDE = 0.15
#: distractors a question: what retrieval gives besides the gold passage
DISTRACTORS = 4
_GLUED = re.compile(r"(?<=[\w%)\]][.?!])(?=[A-Z])")


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A question with passages and their sentences that bear the answer."""

    #: which set it is of
    origin: str
    #: ``train``, ``dev`` or ``test``
    part: str
    question: str
    #: numbers of passages in the bank, the gold one first where there is one
    passages: tuple[int, ...]
    #: one a passage: which of its sentences bear the answer
    gold: tuple[frozenset[int], ...]
    #: one a passage: ``gold``, ``hard`` (retrieved), ``random``, ``none`` (its question has no answer)
    kinds: tuple[str, ...]
    #: where the answers stand in the gold passage's text, where they are known
    spans: tuple[tuple[int, int], ...] = ()


@dataclass(kw_only=True, slots=True)
class Texts:
    """Passages that are to be encoded, each once."""

    passages: list[Passage] = field(default_factory=list)
    sentences: list[tuple[Sentence, ...]] = field(default_factory=list)
    _known: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, title: str, text: str) -> int:
        """Its number."""
        key = (title, text)
        if key not in self._known:
            self._known[key] = len(self.passages)
            self.passages.append(Passage(id=f"p:{len(self.passages)}", title=title, text=text))
            self.sentences.append(split(text))
        return self._known[key]


class Words:
    """BM25 over many texts, as fast as adding up columns."""

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
        """One score a text."""
        columns = [self._terms[t] for t in set(tokenise(question)) if t in self._terms]
        if not columns:
            return np.zeros(self._matrix.shape[0], np.float32)
        total = self._matrix[:, columns].sum(axis=1)
        return np.asarray(total, np.float32).ravel()


def part_of(document: str) -> str:
    """Which part a document is of: its name decides."""
    place = int(hashlib.sha256(f"pruner:{document}".encode()).hexdigest()[:8], 16) / 2**32
    return "test" if place < ASIDE else "dev" if place < 2 * ASIDE else "train"


def parts(weights: dict[str, int]) -> dict[str, str]:
    """Parts of few documents of unequal size: in the order of their digests, filled up to their share."""
    total, filled, found = sum(weights.values()), 0, {}
    for name in sorted(weights, key=lambda n: hashlib.sha256(f"pruner:{n}".encode()).digest()):
        share = filled / total
        found[name] = "test" if share < ASIDE else "dev" if share < 2 * ASIDE else "train"
        filled += weights[name]
    return found


def fused(scores: Sequence[NDArray[np.float32]], depth: int = 100, k: int = 10) -> list[int]:
    """Reciprocal rank fusion as the index does it (decision 0004), best first."""
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
    """Answer-bearing sentences, retrieved distractors, cut and joined paragraphs, unanswerable questions."""
    rng = random.Random(seed)
    found = rows(data / SQUAD)
    sizes = Counter(row["title"] for row in found)
    part = parts(dict(sizes))
    texts = Texts()
    number = [texts.add(_title(row), row["context"]) for row in found]
    by_context = {row["context"]: i for i, row in enumerate(found)}
    questions: list[tuple[int, str, list[tuple[int, int]]]] = []
    for i, row in enumerate(found):
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
        p: [i for i, row in enumerate(found) if part[row["title"]] == p]
        for p in ("train", "dev", "test")
    }
    cases = []
    for (i, question, spans), vector in zip(questions, asked, strict=True):
        where = part[found[i]["title"]]
        # what is trained on comes from paragraphs that are trained on; measured is over all of them
        mask = np.zeros(len(found), np.bool_)
        mask[own["train"] if where == "train" else range(len(found))] = True
        mask[i] = False
        dense = np.where(mask, vectors @ vector, -1).astype(np.float32)
        hard = fused([dense, np.where(mask, words.scores(question), 0)])[:DISTRACTORS]
        others = [j for j in own[where] if j != i and j not in hard]
        gold = _bearing(texts.sentences[number[i]], spans)
        chosen = [(number[i], gold, "gold" if spans else "none")]
        chosen += [(number[j], frozenset(), "hard") for j in hard]
        chosen += [(number[j], frozenset(), "random") for j in rng.sample(others, 2)]
        if where == "train" and spans:
            chosen += _reshaped(texts, found, i, spans, rng)
        case = make_case("squad" if spans else "squad2", where, question, chosen)
        cases.append(replace(case, spans=tuple(dict.fromkeys(spans))))
    return texts, cases


def _reshaped(
    texts: Texts,
    found: list[dict[str, Any]],
    i: int,
    spans: list[tuple[int, int]],
    rng: random.Random,
) -> list[tuple[int, frozenset[int], str]]:
    """The gold paragraph cut to a few of its sentences, or joined with the one beside it.

    One of a handful of shapes a paragraph, so that there are not too many to encode.
    """
    row, context = found[i], found[i]["context"]
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
                found[j]
                for j in (i + 1, i - 1)
                if 0 <= j < len(found) and found[j]["title"] == row["title"]
            ),
            None,
        )
        if beside is None:
            return []
        before = shape.random() < 0.5
        text = f"{beside['context']} {context}" if before else f"{context} {beside['context']}"
        start = -len(beside["context"]) - 1 if before else 0
        moved = [(a - start, b - start) for a, b in spans]
    n = texts.add(_title(row), text)
    return [(n, _bearing(texts.sentences[n], moved), "gold" if moved else "none")]


def _title(row: dict[str, Any]) -> str:
    return str(row["title"]).replace("_", " ")


def _bearing(sentences: Sequence[Sentence], spans: Sequence[tuple[int, int]]) -> frozenset[int]:
    """Sentences in which most of the answers begin."""
    votes = Counter(k for a, _ in spans for k, s in enumerate(sentences) if s.start <= a < s.end)
    most = max(votes.values(), default=0)
    return frozenset(k for k, n in votes.items() if n == most)


def marked(sentences: Sequence[Sentence], spans: Sequence[tuple[int, int]]) -> frozenset[int]:
    """Sentences in which any of the spans begins."""
    return frozenset().union(*(_bearing(sentences, [span]) for span in spans))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Abstracts:
    """The pool with what ranks it."""

    rows: list[dict[str, Any]]
    vectors: NDArray[np.float32]
    words: Words
    place: dict[str, int]

    @classmethod
    def load(cls, data: Path) -> Abstracts:
        """All of them; half a minute."""
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
        """Inner products and BM25 scores."""
        return self.vectors @ vector, self.words.scores(question)


def scifact(
    data: Path, pool: Abstracts, texts: Texts, embedder: SentenceTransformerEmbedder, seed: int = 0
) -> list[Case]:
    """Claims with their rationales, and four retrieved abstracts."""
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
            starts = _fine(row["text"], texts.sentences[n])
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


def _fine(text: str, sentences: Sequence[Sentence]) -> list[int]:
    """Where SciFact's own sentences begin: it glues some of those that our splitter then keeps as one."""
    return [
        s.start + begin
        for s in sentences
        for begin in (0, *(m.start() for m in _GLUED.finditer(text[s.start : s.end])))
    ]


def strangers(
    pool: Abstracts, texts: Texts, where: str, rng: random.Random, n: int
) -> list[tuple[int, frozenset[int], str]]:
    """Passages of the pool that were drawn by lot, for a question whose sets are elsewhere."""
    found: list[tuple[int, frozenset[int], str]] = []
    while len(found) < n:
        # a few hundred of them serve all questions, so that they need not all be encoded
        row = pool.rows[rng.randrange(300) * 97 % len(pool.rows)]
        if row["source"] != "pubmedqa" and (part_of(row["id"]) == "train") == (where == "train"):
            found.append((texts.add(row.get("title") or "", row["text"]), frozenset(), "random"))
    return found


def make_case(
    origin: str, part: str, question: str, chosen: Sequence[tuple[int, frozenset[int], str]]
) -> Case:
    """A question with the passages that were chosen for it: number, gold sentences, role."""
    return Case(
        origin=origin,
        part=part,
        question=question,
        passages=tuple(n for n, _, _ in chosen),
        gold=tuple(g for _, g, _ in chosen),
        kinds=tuple(k for _, _, k in chosen),
    )
