"""SQuAD's paragraphs as one corpus, shared by the experiments on policies.

As in Adaptive RAG's experiment (*Experiment details*): every paragraph is a passage, one question a
paragraph is asked of all of them, and an answer is right when it holds the gold answer's stemmed words.
The index is built once and kept under a folder of work.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

import numpy as np

from posology.budget.prices.book import PriceBook, packaged
from posology.hub import PACKAGED
from posology.index.build.ingest import ingest
from posology.index.build.rows import RowSource
from posology.index.embedders import load
from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder
from posology.index.schema import FORMAT, SPLITTER
from posology.index.search.retriever import Retriever
from posology.index.store import Index
from posology.llm.offline.reader import ExtractiveReader
from posology.query import make_query
from posology.seams import TokenCodec, TokenCounter, TokenEncoder
from posology.text.tokens import wordpiece_counter
from posology.types import Mode, Query, Retrieval, TokenVectors
from strategies.compression.late.codec import LateCodec
from strategies.compression.self_information import make_annotator
from training import pruner_cases
from training.gold import WORK
from training.gold import rows as read

FILE = "squad11_dev_part1.jsonl.gz"
#: whose prices the offline reader's tokens are charged at
SHADOW = "openai:gpt-4o-mini"
#: texts whose token vectors are kept: all paragraphs, and many compressed ones
_KEPT = 20_000
#: a part's paragraphs and which of a paragraph's questions it asks
_PARTS = {"train": (0, 0), "test": (1, 0), "router": (1, 1)}
_WORD = re.compile(r"[^\W_]+")
_STOP = frozenset(
    _WORD.findall(
        "a an and are as at be been by did do does for from had has have he her his how in into is it "
        "its of on or she that the their them there these they this to was were what when where which "
        "who whom whose why will with"
    )
)

Part = Literal["train", "test", "router"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A question with its gold answers."""

    id: str
    text: str
    #: none: the paragraph does not answer it (SQuAD 2.0)
    answers: tuple[str, ...]
    #: the paragraph that it was written for
    passage: str

    @property
    def query(self) -> Query:
        """As it is asked."""
        return make_query(self.text)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Pool:
    """The paragraphs, indexed, and their questions."""

    index: Index
    retriever: Retriever
    embedder: SentenceTransformerEmbedder
    #: by paragraph, in the order of the file
    questions: tuple[tuple[Question, ...], ...]
    #: title of each paragraph's article
    articles: tuple[str, ...] = ()
    #: of the paragraphs and of what the index keeps of them
    key: str = ""

    def sample(self, part: Part, n: int, seed: int = 0) -> tuple[Question, ...]:
        """Questions of different paragraphs. ``train`` shares no paragraph with the others.

        Raises:
            ValueError: the part has not as many.
        """
        _, nth = _PARTS[part]
        own = [self.questions[i] for i in self._paragraphs(part, seed)]
        found = [questions[nth] for questions in own if len(questions) > nth]
        if len(found) < n:
            raise ValueError(f"{part} has {len(found)} questions, not {n}")
        return tuple(found[:n])

    def unseen(self, part: Part, n: int, seed: int = 0) -> tuple[Question, ...]:
        """At most so many questions of a part about articles that the pruner was neither trained nor tuned on.

        ``router`` has every question but the first of a paragraph, so that few articles give many questions. The pool
        must be of the whole file, by whose articles the pruner's parts were divided.
        """
        split = pruner_cases.parts(dict(Counter(self.articles)))
        own = [i for i in self._paragraphs(part, seed) if split[self.articles[i]] == "test"]
        asked = slice(1, None) if part == "router" else slice(0, 1)
        turns = zip_longest(*(self.questions[i][asked] for i in own))
        return tuple(one for turn in turns for one in turn if one is not None)[:n]

    def _paragraphs(self, part: Part, seed: int) -> list[int]:
        half, _ = _PARTS[part]
        # shuffled once, so that parts of one seed stay apart
        order = list(range(len(self.questions)))
        random.Random(seed).shuffle(order)
        return [i for place, i in enumerate(order) if place % 2 == half]

    async def retrieve(self, question: Question, k: int, mode: Mode = "fused") -> Retrieval:
        """The passages for a question."""
        return await self.retriever.retrieve(question.query, k, mode)


class CachedEncoder:
    """A :class:`~posology.seams.TokenEncoder` that encodes a text once."""

    def __init__(self, encoder: TokenEncoder, kept: int = _KEPT) -> None:
        self._encoder = encoder
        self._kept = kept
        self._known: OrderedDict[str, TokenVectors] = OrderedDict()

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """As the encoder's own."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        fresh = dict(zip(new, self._encoder.token_vectors(new), strict=True)) if new else {}
        found = [fresh[text] if text in fresh else self._known[text] for text in texts]
        self._known.update(fresh)
        for text in texts:
            self._known.move_to_end(text)
        while len(self._known) > self._kept:
            self._known.popitem(last=False)
        return found


def open_pool(data: Path, work: Path = WORK, file: str = FILE, *, unseen: bool = False) -> Pool:
    """The index of a file's paragraphs, built where it is not there yet (a minute or two).

    Args:
        data: folder of the data sets.
        work: folder in which indices are kept.
        file: in SQuAD's format.
        unseen: only articles that the pruner was neither trained nor tuned on.
    """
    path = data / file
    rows = read(path)
    made = form()
    if unseen:
        split = pruner_cases.parts(dict(Counter(row["title"] for row in rows)))
        rows = [row for row in rows if split[row["title"]] == "test"]
        made += ".unseen"
    key = hashlib.sha256(path.read_bytes() + made.encode()).hexdigest()[:12]
    embedder = load(None)
    passages = (
        {"id": f"squad:{i}", "title": row["title"], "text": row["context"]}
        for i, row in enumerate(rows)
    )
    index = kept_index(passages, work / f"squad-{key}", embedder)
    return Pool(
        index=index,
        retriever=Retriever(index, embedder),
        embedder=embedder,
        questions=tuple(tuple(_questions(row, i)) for i, row in enumerate(rows)),
        articles=tuple(row["title"] for row in rows),
        key=key,
    )


def form() -> str:
    """Name what the rows of a kept index are made with, which is part of its name."""
    return f"{FORMAT}.{SPLITTER}.{make_annotator().name}.{codec().name}"


def kept_index(
    passages: Iterable[dict[str, str]], where: Path, embedder: SentenceTransformerEmbedder
) -> Index:
    """Return the index of passages, built where it is not there yet, as ``posology ingest`` does.

    Args:
        passages: their ids, titles and texts.
        where: folder in which the index is kept.
        embedder: makes their vectors.
    """
    if not (where / "complete").exists():
        where.mkdir(parents=True, exist_ok=True)
        corpus = where / "corpus.jsonl"
        lines = (json.dumps(one) + "\n" for one in passages)
        corpus.write_text("".join(lines), encoding="utf-8")
        annotator, coding = make_annotator(), codec()
        index = Index.open_or_create(
            where / "index", embedder.name, embedder.dim, annotator=annotator.name, codec=coding
        )
        source = RowSource(embedder=embedder, annotator=annotator, codec=coding)
        if bad := ingest([corpus], index, source).bad:
            raise RuntimeError(f"{bad} passages could not be read")
        (where / "complete").touch()
    return Index.open(where / "index")


def codec() -> TokenCodec:
    """What compresses tokens' vectors at ingest."""
    return LateCodec.packaged()


def arguments(name: str, doc: str | None, *, questions: int) -> argparse.ArgumentParser:
    """What experiments over the pool ask for alike.

    Args:
        name: of the module.
        doc: its docstring.
        questions: how many are asked unless it is said.
    """
    parser = argparse.ArgumentParser(
        prog=name, description=doc, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--work", type=Path, default=WORK, help="where indices are kept")
    parser.add_argument("--questions", type=int, default=questions)
    parser.add_argument("--seed", type=int, default=0)
    return parser


def offline_reader(encoder: TokenEncoder) -> ExtractiveReader:
    """The offline reader, which encodes every shown text once in a run."""
    return ExtractiveReader(CachedEncoder(encoder), counter())


@cache
def counter() -> TokenCounter:
    """Counts as the packaged encoder does."""
    return wordpiece_counter(PACKAGED / "tokenizer.json")


def prices() -> PriceBook:
    """The packaged prices, of which :data:`SHADOW` is one."""
    return packaged()


def holds(answer: str, gold: Iterable[str]) -> bool:
    """Whether an answer holds every stemmed word of one of the gold answers, stop words left out."""
    said = stems(answer)
    return any(wanted <= said for text in gold if (wanted := stems(text)))


def interval(
    values: Sequence[float] | np.ndarray, *, seed: int = 0, draws: int = 2_000
) -> tuple[float, float]:
    """A 95 % bootstrap interval of the mean."""
    sample = np.asarray(values, dtype=float)
    picked = np.random.default_rng(seed).integers(0, len(sample), (draws, len(sample)))
    low, high = np.percentile(sample[picked].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def shown(values: Sequence[float] | np.ndarray, form: str = ".3f") -> str:
    """A mean with its interval."""
    low, high = interval(values)
    return f"{np.mean(values):{form}} [{low:{form}}, {high:{form}}]"


def _questions(row: dict[str, Any], number: int) -> Iterator[Question]:
    for asked in row["qas"]:
        answers = tuple(dict.fromkeys(answer["text"] for answer in asked["answers"]))
        yield Question(
            id=asked["id"], text=asked["question"], answers=answers, passage=f"squad:{number}"
        )


@cache
def _stemmer() -> Callable[[str], str]:
    from nltk.stem.porter import PorterStemmer

    stem: Callable[[str], str] = PorterStemmer().stem
    return stem


def stems(text: str) -> frozenset[str]:
    """The stems of a text's words, stop words left out."""
    words = _WORD.findall(text.lower())
    return frozenset(_stemmer()(word) for word in words if word not in _STOP)
