"""What phrases tell: how quick it is computed, how well it is predicted, and what keeping it costs.

Usage: ``python -m evals.self_information [--data PATH] [--abstracts N] [--model NAME]``.

Abstracts of the pool, every 50th of them held aside: n-gram models of the others are asked for the bits of
a held-aside word, for several orders, and with rare n-grams left out. Bits are of the word itself: an unknown
word costs the bits of its letters and a number those of its digits, so that models with different
vocabularies compare. Then: what annotating costs at ingest, and what reading the phrases costs at question
time, by the same questions to an index with them and one without, in turns.

Times are of the processor, unless they say otherwise.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import anyio
import numpy as np

from posology.index.phrases import encode
from posology.index.schema import Row, digest
from posology.index.search.retriever import Retriever
from posology.index.store import Index
from posology.query import make_query
from posology.testing.models.embedder import HashEmbedder
from posology.text.sentences import split
from posology.types import Passage, Phrases
from strategies.compression.self_information.annotator import NgramScorer, SelfInformationAnnotator
from strategies.compression.self_information.fit import LEAST, ORDER, learn
from strategies.compression.self_information.ngram import NgramModel
from strategies.compression.wording.phrases import Segments, segment

#: order, and how often an n-gram must have come
SIZES = ((1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3))
_ASIDE = 50
#: passages and questions by which reading is measured
_PASSAGES, _QUESTIONS = 2_000, 400
_K = 16


def _read(data: Path, most: int | None) -> list[Passage]:
    with gzip.open(data / "pool.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [
            json.loads(line) for _, line in zip(range(most or sys.maxsize), lines, strict=False)
        ]
    return [Passage(id=r["id"], text=r["text"], title=r.get("title") or "") for r in rows]


def _cut(passages: Sequence[Passage]) -> list[Segments]:
    sentences = [split(p.text) for p in passages]
    started = time.process_time()
    found = [segment(p.text, s) for p, s in zip(passages, sentences, strict=True)]
    seconds = time.process_time() - started
    words = sum(len(f.starts) for f in found)
    phrases = sum(len(f.phrases) for f in found)
    print(
        f"phrases of {len(passages)} abstracts: {1e3 * seconds / len(passages):.2f} ms an abstract, "
        f"{1e6 * seconds / words:.1f} µs a word; {words / len(passages):.0f} words and "
        f"{phrases / len(passages):.0f} phrases an abstract, {words / phrases:.2f} words a phrase, "
        f"{sum(sum(f.protected) for f in found) / phrases:.1%} of the phrases protected"
    )
    return found


def _ngrams(train: Sequence[Passage], aside: Sequence[Passage], found: Sequence[Segments]) -> None:
    words: list[str] = []
    firsts: list[int] = []
    for passage, cut in zip(aside, found, strict=True):
        firsts.extend(len(words) + first for first in cut.sentences)
        words.extend(passage.text[a:b] for a, b in zip(cut.starts, cut.ends, strict=True))
    print(
        f"\nn-grams of {len(train)} abstracts, {len(words)} words of {len(aside)} others\n"
        "order least  bits/word  perplexity  learned in  kept in     µs/word    known"
    )
    for order, least in SIZES:
        started = time.process_time()
        model = learn((p.text for p in train), order=order, least=least)
        learned = time.process_time() - started
        kept = model.to_bytes()
        model = NgramModel.from_bytes(kept)
        started = time.process_time()
        bits = float(model.bits(words, firsts).mean())
        scored = time.process_time() - started
        default = "  built in" if (order, least) == (ORDER, LEAST) else ""
        print(
            f"{order:>5} {least:>5} {bits:>10.2f} {2**bits:>11.0f} {learned:>9.1f} s "
            f"{len(kept) / 1e6:>7.2f} MB {1e6 * scored / len(words):>8.2f}  "
            f"{'/'.join(map(str, model.sizes))}{default}",
            flush=True,
        )


def _annotate(
    annotator: SelfInformationAnnotator, passages: Sequence[Passage], name: str
) -> list[Phrases]:
    sentences = [split(p.text) for p in passages]
    started = time.process_time()
    found = annotator(passages, sentences)
    seconds = time.process_time() - started
    words = sum(int(f.words.sum()) for f in found)
    kept = sum(len(encode(f)) for f in found)
    print(
        f"{name}: {1e3 * seconds / len(passages):.2f} ms an abstract, {1e6 * seconds / words:.1f} µs a "
        f"word with its phrases; {kept / len(passages):.0f} bytes an abstract"
    )
    return found


def _agreement(one: Sequence[Phrases], other: Sequence[Phrases]) -> float:
    """Mean rank correlation of the phrases of a passage."""
    found = []
    for a, b in zip(one, other, strict=True):
        if len(a.starts) > 2:
            ranks = [np.argsort(np.argsort(x.information)) for x in (a, b)]
            found.append(float(np.corrcoef(ranks[0], ranks[1])[0, 1]))
    return statistics.fmean(found)


async def _retrieve(passages: Sequence[Passage], phrases: Sequence[Phrases]) -> None:
    embedder = HashEmbedder(dim=384)
    sentences = [split(p.text) for p in passages]
    encoded = embedder.embed_passages(passages, sentences)
    with tempfile.TemporaryDirectory() as folder:
        retrievers = {}
        for name, annotator in (("without", None), ("with", "n-grams")):
            index = Index.create(Path(folder) / name, embedder.name, 384, annotator=annotator)
            index.upsert(
                [
                    Row(
                        passage=p,
                        sentences=s,
                        encoded=e,
                        digest=digest(p),
                        phrases=f if annotator else None,
                    )
                    for p, s, e, f in zip(passages, sentences, encoded, phrases, strict=True)
                ]
            )
            index.finish()
            retrievers[name] = Retriever(index, embedder)
        times: dict[str, list[float]] = {name: [] for name in retrievers}
        busy: dict[str, list[float]] = {name: [] for name in retrievers}
        for asked in range(_QUESTIONS):
            query = make_query(passages[(asked * 13) % len(passages)].title or "aspirin")
            order = list(retrievers.items())
            for name, retriever in order if asked % 2 else order[::-1]:
                started, worked = time.perf_counter(), time.process_time()
                await retriever.retrieve(query, _K)
                busy[name].append(time.process_time() - worked)
                times[name].append(time.perf_counter() - started)
    print(f"\nretrieval of {_K} of {len(passages)} passages, p50 of {_QUESTIONS} questions:")
    for what, measured in (("by the clock", times), ("of the processor", busy)):
        # the first questions open files
        plain, told = (1e3 * statistics.median(measured[name][10:]) for name in retrievers)
        print(
            f"  {plain:.2f} ms {what} without phrases, {told:.2f} ms with them ({told / plain - 1:+.1%})"
        )


def main(argv: list[str] | None = None) -> int:
    """Measure everything and print the tables."""
    parser = argparse.ArgumentParser(prog="evals.self_information", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--abstracts", type=int, help="of the pool; default: all")
    parser.add_argument("--model", help="a causal language model, to compare with")
    arguments = parser.parse_args(argv)
    if not (arguments.data / "pool.jsonl.gz").exists():
        sys.exit(f"{arguments.data} has no pool.jsonl.gz: name the data sets' folder with --data")
    passages = _read(arguments.data, arguments.abstracts)
    aside = passages[::_ASIDE]
    train = [p for i, p in enumerate(passages) if i % _ASIDE]
    _ngrams(train, aside, _cut(aside))
    print()
    annotator = SelfInformationAnnotator(NgramScorer())
    annotator.learn(train)
    told = _annotate(annotator, aside, "annotated by n-grams")
    if arguments.model:
        from strategies.compression.self_information.causal import load

        causal = SelfInformationAnnotator(load(arguments.model))
        other = _annotate(causal, aside, f"annotated by {arguments.model}")
        print(f"mean rank correlation of the phrases of a passage: {_agreement(told, other):.2f}")
    few = passages[:_PASSAGES]
    anyio.run(_retrieve, few, annotator(few, [split(p.text) for p in few]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
