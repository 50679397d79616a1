"""Medical questions whose answers the pruner has not seen: BioASQ's and PubMedQA's, with the sentences that answer.

**What counts as the answer.** A passage that is shown in part counts as shown if one of these sentences is left:

* BioASQ, factoid: the sentences of an expert's snippet that hold the exact answer, by stemmed words.
* BioASQ, list: of the retrieved snippets' sentences, those that hold as many items of the exact answer as any does.
* BioASQ, yes/no: of every snippet, the sentence that shares most words with the ideal answer.
* PubMedQA: of the question's abstract, the sentence that shares most words with the study's conclusion, which the
  abstract lacks.

Words that stand in the question do not count in the last two: a sentence that only repeats the question answers nothing.
Questions without such a sentence are not asked, nor are BioASQ's summaries.

**What the pruner has seen.** It learned from SciFact's and Evidence Inference's texts. A BioASQ document that shares twelve
words in a row with one of them is left out, and so are PubMedQA's abstracts that were distractors in its cases. Token
codes were fitted without labels, on texts that may be among these.
"""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from evals.pooled import holds, stems
from orchestrator.evaluation.simulation import Gold
from posology.index.build.ingest import ingest
from posology.index.build.rows import QuickRowBuilder, RowSource
from posology.index.embedders import load
from posology.index.search.retriever import Retriever
from posology.index.store import Index
from posology.query import make_query
from posology.types import Query, Retrieval, Sentence
from strategies.compression.late.codec import LateCodec
from training.gold import rows
from training.preflight import INDEX
from training.preflight_cases import FILES, build

BIOASQ, PUBMEDQA = "bioasq_7b-10b.jsonl.gz", "pubmedqa_train.jsonl.gz"
_LEARNED_FROM = frozenset({"scifact", "evidence_inference"})
#: PubMedQA's abstracts among the cases that the pruner learned from or was tuned on, as distractors of SciFact's claims
_DISTRACTORS = frozenset(
    f"pmid:{number}"
    for number in (
        *(9569972, 15065192, 17220021, 20674150, 21172844),
        *(22205377, 22658587, 22955530, 25274085, 25987398),
    )
)
#: words in a row that two texts share only if one was taken from the other
_RUN = 12
_WORD = re.compile(r"\w+")

#: the sentences of passages that answer, by the passage's id, among those that were retrieved
Mark = Callable[[Retrieval], Gold]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Posed:
    """A question, and how to find in a retrieval what answers it."""

    id: str
    query: Query
    #: ids of the passages that experts say answer it
    documents: frozenset[str]
    gold: Mark


@dataclass(frozen=True, kw_only=True, slots=True)
class Snippet:
    """A piece of a document that an expert marked."""

    document: str
    #: whether it is of the abstract, not of the title
    abstract: bool
    #: characters of the title or abstract
    start: int
    end: int
    text: str


def pubmedqa(data: Path, index: Path = INDEX) -> tuple[Retriever, list[Posed]]:
    """PubMedQA's questions over the pool of 44,581 abstracts, in the order of the file."""
    embedder, codec = load(), LateCodec.packaged()
    if not (index / "complete").exists():
        build(data, index, embedder, codec)
    texts = {row["id"]: row["text"] for row in rows(data / FILES[0])}
    posed = []
    for row in rows(data / PUBMEDQA):
        document = f"pmid:{row['pmid']}"
        wanted = stems(row["long_answer"]) - stems(row["question"])
        if document not in _DISTRACTORS and wanted & stems(texts[document]):
            posed.append(
                Posed(
                    id=document,
                    query=make_query(row["question"]),
                    documents=frozenset({document}),
                    gold=nearest({document: None}, wanted),
                )
            )
    opened = Index.open(index / "index")
    return Retriever(opened, embedder, codec=lambda: codec), posed


def bioasq(data: Path, work: Path) -> tuple[Retriever, list[Posed]]:
    """BioASQ's factoid, list and yes/no questions over all snippets, joined by document; shuffled."""
    asked = rows(data / BIOASQ)
    seen = _runs(row["text"] for row in rows(data / FILES[0]) if row["source"] in _LEARNED_FROM)
    pieces: dict[str, set[Snippet]] = defaultdict(set)
    for row in asked:
        for snippet in _snippets(row):
            pieces[snippet.document].add(snippet)
    texts = {name: joined(of) for name, of in pieces.items()}
    texts = {name: text for name, text in texts.items() if not seen & _runs([text])}
    posed = [found for row in asked if (found := _posed(row, texts)) is not None]
    random.Random(0).shuffle(posed)
    return _open(texts, work), posed


def joined(snippets: Iterator[Snippet] | set[Snippet]) -> str:
    """Return a document's snippets as one text, in their order, where they overlap only once."""
    parts: list[str] = []
    ordered = sorted(snippets, key=lambda s: (s.abstract, s.start, s.end, s.text))
    for _, of in groupby(ordered, key=lambda s: s.abstract):
        last = -1
        for one in of:
            if one.start >= last:
                parts.append(one.text.strip())
            elif one.end > last:
                parts[-1] += one.text[last - one.start :].rstrip()
            last = max(last, one.end)
    return " ".join(parts)


def _snippets(row: Mapping[str, Any]) -> Iterator[Snippet]:
    for one in row["snippets"]:
        yield Snippet(
            document=f"bioasq:{one['document'].rsplit('/', 1)[1]}",
            abstract=one["beginSection"] != "title",
            start=one["offsetInBeginSection"],
            end=one["offsetInEndSection"],
            text=one["text"],
        )


def _posed(row: Mapping[str, Any], texts: Mapping[str, str]) -> Posed | None:
    spans = _spans(_snippets(row), texts)
    if not spans or row["type"] == "summary":
        return None
    query = make_query(row["body"])
    if row["type"] == "yesno":
        gold = nearest(spans, stems(row["ideal_answer"][0]) - stems(row["body"]))
    else:
        forms = [[one] if isinstance(one, str) else one for one in row["exact_answer"]]
        items = [[one for of in forms for one in of]] if row["type"] == "factoid" else forms
        found = [
            sum(holds(texts[name][start:end], item) for item in items)
            for name, of in spans.items()
            for start, end in of
        ]
        if not max(found):
            return None
        gold = holding(spans, items)
    return Posed(id=row["id"], query=query, documents=frozenset(spans), gold=gold)


def _spans(
    snippets: Iterator[Snippet], texts: Mapping[str, str]
) -> dict[str, list[tuple[int, int]]]:
    """Return where a question's snippets stand in the joined texts."""
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for one in snippets:
        start = texts.get(one.document, "").find(one.text.strip())
        if start >= 0:
            found[one.document].append((start, start + len(one.text.strip())))
    return dict(found)


#: by document: where its snippets stand; ``None``: all of it is one
Spans = Mapping[str, Sequence[tuple[int, int]] | None]


def _marked(retrieval: Retrieval, spans: Spans) -> Iterator[tuple[str, str, list[Sentence]]]:
    """Yield for each snippet that was retrieved its passage's id and text, and the sentences that it is of."""
    for one in retrieval.passages:
        passage = one.passage
        if passage.id not in spans:
            continue
        for start, end in spans[passage.id] or [(0, len(passage.text))]:
            sentences = [s for s in one.sentences if s.start < end and start < s.end]
            yield passage.id, passage.text, sentences


def nearest(spans: Spans, wanted: frozenset[str]) -> Mark:
    """Mark in each snippet the sentences that hold most of the wanted words."""

    def mark(retrieval: Retrieval) -> Gold:
        found: dict[str, list[Sentence]] = defaultdict(list)
        for name, text, sentences in _marked(retrieval, spans):
            shared = [len(wanted & stems(text[s.start : s.end])) for s in sentences]
            most = max(shared, default=0)
            # a snippet that only repeats the question is evidence all the same, if experts say so
            best = [s for s, n in zip(sentences, shared, strict=True) if n == most]
            found[name] += [s for s in best if s not in found[name]]
        return dict(found)

    return mark


def holding(spans: Spans, items: Sequence[Sequence[str]]) -> Mark:
    """Mark the sentences that hold as many items as any does, by one of its forms each."""

    def mark(retrieval: Retrieval) -> Gold:
        counts = [
            (name, sentence, sum(holds(text[sentence.start : sentence.end], i) for i in items))
            for name, text, sentences in _marked(retrieval, spans)
            for sentence in sentences
        ]
        most = max((n for _, _, n in counts), default=0)
        found: dict[str, list[Sentence]] = defaultdict(list)
        for name, sentence, n in counts:
            if n == most > 0 and sentence not in found[name]:
                found[name].append(sentence)
        return dict(found)

    return mark


def _runs(texts: Iterable[str]) -> set[int]:
    """Return digests of every so many words in a row."""
    found: set[int] = set[int]()
    for text in texts:
        words = [word.lower() for word in _WORD.findall(text)]
        found.update(hash(tuple(words[i : i + _RUN])) for i in range(len(words) - _RUN + 1))
    return found


def _open(texts: Mapping[str, str], work: Path) -> Retriever:
    """The index of the joined snippets, built where it is not there yet (some minutes)."""
    embedder, codec = load(), LateCodec.packaged()
    where = work / f"bioasq-{len(texts)}-{codec.name}"
    if not (where / "complete").exists():
        where.mkdir(parents=True, exist_ok=True)
        corpus = where / "corpus.jsonl"
        lines = (json.dumps({"id": name, "text": text}) for name, text in sorted(texts.items()))
        corpus.write_text("\n".join(lines) + "\n", encoding="utf-8")
        index = Index.open_or_create(where / "index", embedder.name, embedder.dim, codec=codec)
        # sentences and tokens are encoded when they are retrieved
        quick = QuickRowBuilder(embedder=embedder, annotator=None)
        source = RowSource(embedder=embedder, codec=codec, builder=quick)
        if ingest([corpus], index, source).bad:
            raise RuntimeError("some documents could not be read")
        (where / "complete").touch()
    return Retriever(Index.open(where / "index"), embedder, codec=lambda: codec)
