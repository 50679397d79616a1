"""Measures what one compressor leaves of one question's context, and caches the result."""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

from evals import pooled
from evals.compressors.data import Asked
from posology.llm.offline.reader import NAME, ExtractiveReader
from posology.llm.offline.replies import NOTICE
from posology.seams import Complete, Compressor, Rewriter
from posology.text.sentences import split
from posology.types import Answer, Compressed, Excerpt, Passage, Retrieval, Sentence, Task
from prompts.fence import shown
from strategies.evidence import whole
from strategies.single_call import ask, conclude

#: questions whose texts the reader encodes together: it is several times as fast as one by one
BATCH = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """What one compressor left at one level of the context of one question."""

    id: str
    keep: float | None
    #: tokens of the passages, and of their shown text, marks of omission and summaries included
    tokens: int
    left: int
    #: mean share of the words of the sentences that bear the answer that is shown, as they stand in the source;
    #: ``None``: none of them was retrieved
    gold: float | None
    #: share of these sentences that is left whole
    whole: float | None
    #: whether an answer as it is written is left in its passage; ``None``: none of them was retrieved
    answer: bool | None
    #: whether the offline reader's answer holds a gold answer; ``None``: it was not asked
    right: bool | None
    #: passages, and those without an answer of which nothing is left, and how many of these there are
    passages: int
    emptied: int
    others: int
    #: that compressing took, its own calls included
    seconds: float
    #: tokens of its own calls
    input: int = 0
    output: int = 0
    #: digest of the sources that it was measured with
    sources: str = ""


class Whole:
    """Leaves everything: direct RAG."""

    name = "whole"
    extractive = True

    def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:  # noqa: ARG002
        """All passages with all sentences."""
        count = sum(len(one.sentences) for one in retrieval.passages)
        return Compressed(
            excerpts=whole(retrieval.passages), kept=count, sentences=count, compressor=self.name
        )

    def expected_ratio(self, keep: float | None) -> float:  # noqa: ARG002
        """All."""
        return 1.0

    def seconds(self, retrieval: Retrieval, keep: float | None) -> float:  # noqa: ARG002
        """None to speak of."""
        return 0.0


class Chance:
    """Leaves sentences by chance: what any choice should beat."""

    name = "chance"
    extractive = True

    def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:
        """A share of the sentences, rounded; the same ones for the same question."""
        keep = 0.2 if keep is None else keep
        places = [(i, s) for i, one in enumerate(retrieval.passages) for s in one.sentences]
        kept = random.Random(retrieval.query.text).sample(places, round(keep * len(places)))
        excerpts = []
        for i, one in enumerate(retrieval.passages):
            own = sorted((s for j, s in kept if j == i), key=lambda s: s.start)
            if own:
                excerpts.append(Excerpt(passage=one.passage, sentences=tuple(own)))
        return Compressed(
            excerpts=tuple(excerpts), kept=len(kept), sentences=len(places), compressor=self.name
        )

    def expected_ratio(self, keep: float | None) -> float:
        """The share."""
        return 0.2 if keep is None else keep

    def seconds(self, retrieval: Retrieval, keep: float | None) -> float:  # noqa: ARG002
        """None to speak of."""
        return 0.0


class Kept:
    """Rows of one compressor on one set, a line each, in a file that is only added to."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._rows: dict[tuple[str, float | None], Row] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                row = Row(**json.loads(line))
                self._rows[row.id, row.keep] = row

    def forget(self) -> None:
        """Measure anew."""
        self._path.unlink(missing_ok=True)
        self._rows.clear()

    def lacking(self, questions: Sequence[Asked], keep: float | None) -> list[Asked]:
        """Those that are not measured at a level."""
        return [one for one in questions if (one.id, keep) not in self._rows]

    def rows(self, questions: Iterable[Asked], keep: float | None) -> list[Row]:
        """Those of questions that are measured."""
        found = (self._rows.get((one.id, keep)) for one in questions)
        return [row for row in found if row is not None]

    def add(self, rows: Sequence[Row]) -> None:
        """Keep for the next run."""
        with self._path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(asdict(row)) + "\n" for row in rows)
        self._rows.update({(row.id, row.keep): row for row in rows})


@cache
def sources() -> str:
    """Digest of what compressors are made of."""
    folder = Path(__file__).resolve().parents[2] / "strategies" / "compression"
    total = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.suffix in {".py", ".npz", ".json"}):
        total.update(path.read_bytes())
    return total.hexdigest()[:8]


async def measure(
    compressor: Compressor | Rewriter,
    questions: Sequence[Asked],
    keep: float | None,
    complete: Complete,
    reader: Reader | None,
) -> list[Row]:
    """A row a question."""
    made = sources()
    done: list[tuple[Asked, Compressed, float]] = []
    for one in questions:
        began = time.perf_counter()
        compressed = await _compress(compressor, one.retrieval, keep, complete)
        done.append((one, compressed, time.perf_counter() - began))
    right = await reader([(one, c) for one, c, _ in done]) if reader else [None] * len(done)
    return [
        replace(_row(one, compressed, keep), seconds=seconds, right=said, sources=made)
        for (one, compressed, seconds), said in zip(done, right, strict=True)
    ]


async def _compress(
    compressor: Compressor | Rewriter, retrieval: Retrieval, keep: float | None, complete: Complete
) -> Compressed:
    if isinstance(compressor, Rewriter):
        task = Task(query=retrieval.query, retrieval=retrieval, model=NAME, max_tokens=None)
        return await compressor(task, keep, complete)
    return compressor(retrieval, keep)


class Reader:
    """The offline reader, over what is left; it encodes the texts of many questions together."""

    def __init__(self, encoder: pooled.CachedEncoder) -> None:
        self._encoder = encoder
        self._reader = ExtractiveReader(encoder, pooled.counter())

    async def __call__(self, asked: Sequence[tuple[Asked, Compressed]]) -> list[bool]:
        """Whether each answer holds a gold answer."""
        read = [[_readable(excerpt) for excerpt in compressed.excerpts] for _, compressed in asked]
        self._encoder.token_vectors(
            [one.retrieval.query.text for one, _ in asked]
            + [" ".join(_texts(excerpt)) for excerpts in read for excerpt in excerpts]
        )
        return [
            await self._right(one, tuple(excerpts))
            for (one, _), excerpts in zip(asked, read, strict=True)
        ]

    async def _right(self, one: Asked, excerpts: tuple[Excerpt, ...]) -> bool:
        task = Task(query=one.retrieval.query, retrieval=one.retrieval, model=NAME, max_tokens=None)
        call = ask(task, excerpts, strategy="compressed")
        if call is None:
            return False
        outcome = conclude(
            task.query, await self._reader(call), call.excerpts, strategy="compressed"
        )
        return isinstance(outcome, Answer) and pooled.holds(
            outcome.text.replace(NOTICE, ""), one.answers
        )


def _readable(excerpt: Excerpt) -> Excerpt:
    """With a summary as if it were text: the offline reader quotes, and has nothing else to quote."""
    if excerpt.summary is None:
        return excerpt
    text = " ".join([*_texts(excerpt), excerpt.summary])
    passage = Passage(id=excerpt.passage.id, title=excerpt.passage.title, text=text)
    return Excerpt(passage=passage, sentences=split(text))


def _texts(excerpt: Excerpt) -> Iterator[str]:
    return (span.of(excerpt.passage.text) for span in excerpt.sentences)


@lru_cache(maxsize=100_000)
def _tokens(text: str) -> int:
    return pooled.counter()(text)


def _row(one: Asked, compressed: Compressed, keep: float | None) -> Row:
    passages = one.retrieval.passages
    left = {excerpt.passage.id: excerpt for excerpt in compressed.excerpts}
    shares: list[float] = []
    wholes: list[bool] = []
    answered: list[bool] = []
    for retrieved in passages:
        name, text = retrieved.passage.id, retrieved.passage.text
        if not (numbers := one.gold.get(name)):
            continue
        excerpt = left.get(name)
        spans = excerpt.sentences if excerpt else ()
        for number in numbers:
            sentence = retrieved.sentences[number]
            shares.append(_share(text, sentence, spans))
            wholes.append(any(s.start <= sentence.start and sentence.end <= s.end for s in spans))
        said = [*_texts(excerpt), excerpt.summary or ""] if excerpt else []
        answered.append(any(answer in part for answer in one.answers for part in said))
    others = [r.passage.id for r in passages if not one.gold.get(r.passage.id)]
    usage = compressed.usage
    return Row(
        id=one.id,
        keep=keep,
        tokens=sum(_tokens(shown(excerpt)) for excerpt in whole(passages)),
        left=sum(_tokens(shown(e)) + _tokens(e.summary or "") for e in compressed.excerpts),
        gold=sum(shares) / len(shares) if shares else None,
        whole=sum(wholes) / len(wholes) if wholes else None,
        answer=any(answered) if one.answers and shares else None,
        right=None,
        passages=len(passages),
        emptied=sum(name not in left for name in others),
        others=len(others),
        seconds=0.0,
        input=usage.total_input if usage else 0,
        output=usage.total_output if usage else 0,
    )


def _share(text: str, sentence: Sentence, spans: Sequence[Sentence]) -> float:
    """The share of a sentence's words that spans show."""
    inside = [
        text[max(s.start, sentence.start) : min(s.end, sentence.end)]
        for s in spans
        if s.start < sentence.end and sentence.start < s.end
    ]
    return sum(len(part.split()) for part in inside) / max(len(sentence.of(text).split()), 1)
