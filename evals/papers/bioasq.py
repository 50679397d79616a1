"""BioASQ's questions over their experts' snippets: medical literature that no packaged pruner was trained on.

The file has no abstracts, so a passage is one article's snippets in the order of the article, 44 words in the mean: the
length of LeanContext's chunks (500 characters) and of TCRA-LLM's entries. Gold are the sentences that a question's own snippets
cover. Snippets that experts chose for other questions stand beside them, and may answer, too.

Articles that are also in the pool are left out with their questions, because the pruner's distractors were drawn from
it; so are questions of which a snippet has :data:`SHINGLE` words in a row with a text that the pruner may have read.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import anyio

from evals import pooled
from evals.papers.suite import Given, Suite
from posology.index.embedders import load
from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder
from posology.index.search.retriever import DEPTH, Retriever
from posology.index.store import Index
from posology.query import make_query
from posology.types import Mode, Passage, Query, Retrieval, Sentence
from training.gold import rows
from training.pruner_cases import POOL, alone

QUESTIONS, SNIPPETS = "bioasq_7b-10b.jsonl.gz", "bioasq_snippets.jsonl.gz"
#: what the pruner learned from, by file and field; SQuAD has no medical texts
READ = (
    (POOL, "text"),
    ("covidqa.jsonl.gz", "context"),
    ("evidence_inference_articles.jsonl.gz", "text"),
)
FILES = (QUESTIONS, SNIPPETS, *(name for name, _ in READ))
#: words in a row that make two texts one
SHINGLE = 12
#: characters of a sentence that a gold snippet must cover, as a share
COVERED = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """An expert's question."""

    id: str
    text: str
    #: ``yesno``, ``factoid``, ``list`` or ``summary``
    kind: str
    #: by passage: where its gold snippets stand
    gold: Mapping[str, tuple[Sentence, ...]]
    #: accepted short answers; empty: there are none
    answers: tuple[str, ...]
    #: the experts' answers in sentences
    ideal: tuple[str, ...]

    @property
    def query(self) -> Query:
        """As it is asked."""
        return make_query(self.text)

    def bears(self, passage: str, sentence: Sentence) -> bool:
        """Return whether a gold snippet covers at least :data:`COVERED` of a sentence."""
        covered = sum(
            max(0, min(sentence.end, one.end) - max(sentence.start, one.start))
            for one in self.gold.get(passage, ())
        )
        return covered >= COVERED * (sentence.end - sentence.start)


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Passages and the questions about them."""

    passages: tuple[Passage, ...]
    questions: tuple[Question, ...]

    @property
    def aside(self) -> Corpus:
        """The questions that the packaged cross-encoder did not learn from, and their articles."""
        questions = (*self.part("dev"), *self.part("test"))
        named = {article for one in questions for article in one.gold}
        return Corpus(
            passages=tuple(one for one in self.passages if one.id in named), questions=questions
        )

    @cached_property
    def texts(self) -> dict[str, str]:
        """Text of each passage."""
        return {one.id: one.text for one in self.passages}

    def part(self, name: str) -> tuple[Question, ...]:
        """Return the questions of a part of the packaged cross-encoder's lessons, without articles of other parts.

        Args:
            name: ``train``; ``dev``, on which it was calibrated; or ``test``, which it never saw.
        """
        return tuple(
            alone(
                self.questions,
                name,
                named=lambda one: f"bioasq:{one.id}",
                texts=lambda one: one.gold,
            )
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Bench:
    """The corpus with its index."""

    corpus: Corpus
    #: folder of the index
    place: Path
    index: Index
    embedder: SentenceTransformerEmbedder

    @cached_property
    def retriever(self) -> Retriever:
        """Retrieves without a re-ranker."""
        return Retriever(self.index, self.embedder)

    def retrieve(
        self, questions: Sequence[Question], k: int, mode: Mode = "fused", depth: int = DEPTH
    ) -> dict[str, Retrieval]:
        """Return the passages for each question, by its id. Blocking.

        Args:
            questions: of the corpus.
            k: passages of each.
            mode: the order.
            depth: passages of a first stage.
        """

        async def run() -> dict[str, Retrieval]:
            return {
                one.id: await self.retriever.retrieve(one.query, k, mode, depth=depth)
                for one in questions
            }

        # in a thread of its own, because the caller may have an event loop
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(lambda: anyio.run(run)).result()


def short(corpus: Corpus) -> list[Question]:
    """Return the questions with exact answers that the packaged cross-encoder never saw."""
    return [one for one in corpus.part("test") if one.answers]


class Literature(Suite):
    """A suite over BioASQ's questions."""

    files = FILES
    questions = 500

    def bench(
        self, given: Given, which: Callable[[Corpus], Sequence[Question]] | None = None
    ) -> tuple[Bench, list[Question]]:
        """Return the corpus, and the questions in an order drawn by the seed.

        Args:
            given: data folder, number of questions, and seed.
            which: chooses questions of the corpus; ``None``: all.
        """
        bench = open_bench(given.data, given.work)
        asked = list(which(bench.corpus) if which else bench.corpus.questions)
        random.Random(given.seed).shuffle(asked)
        return bench, asked[: given.questions]


def read(data: Path, work: Path) -> Corpus:
    """Read the corpus, without what the pruner may have read.

    Args:
        data: folder of the data sets.
        work: folder in which the ids of questions that are left out are kept (a minute).
    """
    known = {str(row["pmid"]) for row in rows(data / POOL) if row.get("pmid")}
    asked = rows(data / QUESTIONS)
    shared = _kept_shared(data, work, asked)
    snippets = [
        (_article(one["document"]), _order(one), one["text"])
        for row in asked
        for one in row["snippets"]
    ]
    snippets += [(row["pmid"], _LAST, row["text"]) for row in rows(data / SNIPPETS)]
    articles: dict[str, list[tuple[tuple[int, int], str]]] = {}
    for article, order, text in snippets:
        if article not in known and text.strip():
            articles.setdefault(article, []).append((order, " ".join(text.split())))
    passages = {article: _passage(article, parts) for article, parts in articles.items()}
    questions = (_question(row, passages) for row in asked)
    return Corpus(
        passages=tuple(passages.values()),
        questions=tuple(
            one
            for one, row in zip(questions, asked, strict=True)
            if one.gold
            and one.id not in shared
            and not any(_article(s["document"]) in known for s in row["snippets"])
        ),
    )


@lru_cache(maxsize=1)
def open_bench(data: Path, work: Path) -> Bench:
    """Return :attr:`Corpus.aside` with its index, which is built where it is not there yet (7 minutes of a core).

    Args:
        data: folder of the data sets.
        work: folder in which indices are kept.
    """
    corpus, embedder = read(data, work).aside, load(None)
    passages = [{"id": one.id, "title": one.title, "text": one.text} for one in corpus.passages]
    lines = [json.dumps(one) + "\n" for one in passages]
    key = hashlib.sha256("".join([*lines, pooled.form()]).encode()).hexdigest()[:12]
    where = work / f"bioasq-{key}"
    index = pooled.kept_index(passages, where, embedder)
    return Bench(corpus=corpus, place=where / "index", index=index, embedder=embedder)


def shared(asked: Sequence[Mapping[str, Any]], texts: Iterable[str]) -> set[str]:
    """Return the ids of questions of which a snippet has :data:`SHINGLE` words in a row with a text."""
    own: dict[tuple[str, ...], set[str]] = {}
    for row in asked:
        for snippet in row["snippets"]:
            for words in _shingles(snippet["text"]):
                own.setdefault(words, set()).add(row["id"])
    # four words of each first, because nearly every text has none of these
    traces = {(words[0], words[4], words[7], words[-1]) for words in own}
    found: set[str] = set()
    for text in texts:
        w = _words(text)
        if traces.isdisjoint(zip(w, w[4:], w[7:], w[SHINGLE - 1 :], strict=False)):
            continue
        found.update(one for words in _shingles(text) for one in own.get(words, ()))
    return found


_LAST = (2, 0)
_WORD = re.compile(r"\w+")


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _shingles(text: str) -> Iterator[tuple[str, ...]]:
    words = _words(text)
    return (tuple(words[i : i + SHINGLE]) for i in range(len(words) - SHINGLE + 1))


def _kept_shared(data: Path, work: Path, asked: Sequence[Mapping[str, Any]]) -> set[str]:
    sizes = [(name, (data / name).stat().st_size) for name, _ in [*READ, (QUESTIONS, "")]]
    key = hashlib.sha256(repr((SHINGLE, sizes)).encode()).hexdigest()[:12]
    path = work / f"bioasq-shared-{key}.json"
    if not path.exists():
        found = shared(asked, (text for name, field in READ for text in _texts(data / name, field)))
        work.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(sorted(found)), encoding="utf-8")
    return set(json.loads(path.read_text(encoding="utf-8")))


def _texts(path: Path, field: str) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from (json.loads(line)[field] for line in lines)


def _article(document: str) -> str:
    return document.rsplit("/", 1)[-1]


def _order(snippet: Mapping[str, Any]) -> tuple[int, int]:
    """Place of a snippet in its article: titles first; those of unknown place last."""
    return (int(snippet["beginSection"] != "title"), int(snippet["offsetInBeginSection"]))


def _passage(article: str, parts: Iterable[tuple[tuple[int, int], str]]) -> Passage:
    """One article's snippets, each once, without those that another one holds."""
    ordered = list(dict.fromkeys(text for _, text in sorted(parts)))
    kept = [one for one in ordered if not any(one != other and one in other for other in ordered)]
    return Passage(id=f"pmid:{article}", text=" ".join(kept))


def _question(row: Mapping[str, Any], passages: Mapping[str, Passage]) -> Question:
    gold: dict[str, list[Sentence]] = {}
    for snippet in row["snippets"]:
        passage = passages.get(_article(snippet["document"]))
        text = " ".join(snippet["text"].split())
        if passage is None or not text or (at := passage.text.find(text)) < 0:
            continue
        gold.setdefault(passage.id, []).append(Sentence(start=at, end=at + len(text)))
    return Question(
        id=row["id"],
        text=row["body"],
        kind=row["type"],
        gold={name: tuple(dict.fromkeys(of)) for name, of in gold.items()},
        answers=tuple(_flat(row.get("exact_answer"))) if row["type"] in ("factoid", "list") else (),
        ideal=tuple(_flat(row.get("ideal_answer"))),
    )


def _flat(answer: Any) -> Iterator[str]:
    """Yield all texts of an answer, which is a text, a list, or a list of lists."""
    if isinstance(answer, str):
        yield answer
    elif answer:
        for one in answer:
            yield from _flat(one)
