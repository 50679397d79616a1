"""Calibrates the offline reader's refusal threshold and reports how well it finds answers.

Usage: ``python -m evals.offline_reader [--data PATH] [--questions N]``.

Every question is read twice: against passages that hold its answer, and against passages that do
not. Even questions choose the threshold (``dev``): the highest that still keeps 90 % of the
answerable ones of every set. Odd ones report (``held``).

* ``squad``: its paragraph and the 4 nearest of the same article; the 5 nearest without it.
* ``pubmedqa``: the 8 nearest abstracts with its own; the 8 nearest others. The others are of the
  same topic and now and then do answer, so refusing all of them is not the goal.
* ``random``: PubMedQA questions against the abstracts retrieved for another question.
* ``squad2``: a question and its own paragraph alone, answerable or not: written to mislead.
* ``sample``: the corpus that ships, never fitted on.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from posology.index.embedders import load
from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder
from posology.llm.offline.choice import THRESHOLD
from posology.llm.offline.scores import Scored, SentenceScorer
from posology.text.sentences import split
from posology.types import Excerpt, Passage

_FILES = ("squad11_dev_part1.jsonl.gz", "squad20_dev_part.jsonl.gz", "pool.jsonl.gz")


_GROUPS = (("squad",), ("pubmedqa",), ("random",), ("pubmedqa", "random"), ("squad2",))
_THRESHOLDS = tuple(round(0.4 + 0.02 * i, 2) for i in range(19))
#: The share of answerable questions that each of these sets must keep.
_KEEP = 0.9


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A question with passages, and whether they hold its answer."""

    kind: str
    question: str
    excerpts: tuple[Excerpt, ...]
    answerable: bool
    #: whether the case chooses the threshold
    dev: bool
    #: passage id and code point of the answer's start, where known
    gold: frozenset[tuple[str, int]] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class Read:
    """A case as the reader scored it."""

    case: Case
    best: float
    #: whether the best sentence holds the answer; ``None``: not known
    found: bool | None


def _rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _excerpt(id_: str, text: str) -> Excerpt:
    return Excerpt(passage=Passage(id=id_, text=text), sentences=split(text))


def _squad(data: Path, embedder: SentenceTransformerEmbedder, n: int) -> Iterator[Case]:
    rows = _rows(data / _FILES[0])
    excerpts = [_excerpt(str(i), row["context"]) for i, row in enumerate(rows)]
    asked = [(i, qa) for i, row in enumerate(rows) for qa in row["qas"]]
    random.Random(1).shuffle(asked)
    asked = asked[:n]
    near = embedder.embed_passages([e.passage for e in excerpts], [() for _ in excerpts])
    vectors = np.array([e.vector for e in near])
    queries = embedder.embed_queries([qa["question"] for _, qa in asked])
    for k, (i, qa) in enumerate(asked):
        others = [j for j, r in enumerate(rows) if r["title"] == rows[i]["title"] and j != i]
        others.sort(key=lambda j, q=queries[k]: -float(vectors[j] @ q))  # type: ignore[misc]
        gold = frozenset((str(i), a["answer_start"]) for a in qa["answers"])
        for holds in (True, False):
            chosen = [i, *others[:4]] if holds else others[:5]
            yield Case(
                kind="squad",
                question=qa["question"],
                excerpts=tuple(excerpts[j] for j in chosen),
                answerable=holds,
                dev=k % 2 == 0,
                gold=gold if holds else frozenset(),
            )


def _squad2(data: Path, n: int) -> Iterator[Case]:
    asked = [(i, r, qa) for i, r in enumerate(_rows(data / _FILES[1])) for qa in r["qas"]]
    random.Random(2).shuffle(asked)
    for k, (i, row, qa) in enumerate(asked[:n]):
        yield Case(
            kind="squad2",
            question=qa["question"],
            excerpts=(_excerpt(str(i), row["context"]),),
            answerable=not qa["is_impossible"],
            dev=k % 2 == 0,
            gold=frozenset((str(i), a["answer_start"]) for a in qa["answers"]),
        )


def _pubmedqa(data: Path, embedder: SentenceTransformerEmbedder, n: int) -> Iterator[Case]:
    pool = _rows(data / _FILES[2])
    vectors = np.load(data / "pool.minilm.f16.npy").astype(np.float32)
    place = {row["id"]: i for i, row in enumerate(pool)}
    asked = [r for r in _rows(data / "pubmedqa_train.jsonl.gz") if f"pmid:{r['pmid']}" in place][:n]
    queries = embedder.embed_queries([row["question"] for row in asked])
    nearest = [np.argsort(-(vectors @ q))[:9].tolist() for q in queries]
    for k, row in enumerate(asked):
        gold = place[f"pmid:{row['pmid']}"]
        rest = [i for i in nearest[k] if i != gold]
        other = [i for i in nearest[(k + len(asked) // 2) % len(asked)] if i != gold]
        for kind, chosen, holds in (
            ("pubmedqa", [gold, *rest[:7]], True),
            ("pubmedqa", rest[:8], False),
            ("random", other[:8], False),
        ):
            yield Case(
                kind=kind,
                question=row["question"],
                excerpts=tuple(_excerpt(pool[i]["id"], pool[i]["text"]) for i in chosen),
                answerable=holds,
                dev=k % 2 == 0,
            )


def _sample(embedder: SentenceTransformerEmbedder) -> Iterator[Case]:
    from posology.corpus import sample

    with sample.notes_file() as path:
        notes = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    excerpts = [_excerpt(note["id"], note["text"]) for note in notes]
    passages = [Passage(id=n["id"], title=n["title"], text=n["text"]) for n in notes]
    vectors = np.array([e.vector for e in embedder.embed_passages(passages, [()] * len(notes))])
    for question in sample.questions():
        (query,) = embedder.embed_queries([question.query.text])
        chosen = np.argsort(-(vectors @ query))[:8].tolist()
        texts = {note["id"]: note["text"] for note in notes}
        yield Case(
            kind="sample",
            question=question.query.text,
            excerpts=tuple(excerpts[i] for i in chosen),
            answerable=not question.unanswerable,
            dev=False,
            gold=frozenset(
                (e.passage_id, texts[e.passage_id].index(e.quote)) for e in question.evidence
            ),
        )


def _read(case: Case, scorer: SentenceScorer) -> Read:
    scored = scorer(case.question, case.excerpts)
    found = _holds(case, scored[0]) if scored and case.gold else None
    return Read(case=case, best=scored[0].score if scored else -1.0, found=found)


def _holds(case: Case, best: Scored) -> bool:
    passage = case.excerpts[best.excerpt].passage.id
    sentence = best.sentence
    return any(p == passage and sentence.start <= at < sentence.end for p, at in case.gold)


def _report(reads: list[Read], kinds: tuple[str, ...], threshold: float) -> str:
    yes = [r for r in reads if r.case.kind in kinds and r.case.answerable]
    no = [r for r in reads if r.case.kind in kinds and not r.case.answerable]
    kept = sum(r.best >= threshold for r in yes) / max(len(yes), 1)
    refused = sum(r.best < threshold for r in no) / max(len(no), 1)
    answered = [r for r in (*yes, *no) if r.best >= threshold]
    precision = sum(r.case.answerable for r in answered) / max(len(answered), 1)
    f1 = 2 * precision * kept / max(precision + kept, 1e-9)
    known = [r for r in yes if r.found is not None]
    found = sum(bool(r.found) for r in known) / max(len(known), 1)
    cells = (
        f"{kept:.2f}" if yes else "   -",
        f"{refused:.2f}" if no else "   -",
        f"{(kept + refused) / 2:.2f}" if yes and no else "   -",
        f"{f1:.2f}" if yes and no else "   -",
        f"{found:.2f}" if known else "   -",
    )
    return f"{len(yes):>5} {len(no):>5}  " + "  ".join(cells)


def _choose(dev: list[Read]) -> float:
    """The highest threshold at which every set keeps :data:`_KEEP` of its answerable questions."""
    chosen = _THRESHOLDS[0]
    for t in _THRESHOLDS:
        for kind in ("squad", "pubmedqa", "squad2"):
            scores = [r.best for r in dev if r.case.kind == kind and r.case.answerable]
            if np.mean([s >= t for s in scores]) < _KEEP:
                return chosen
        chosen = t
    return chosen


def main(argv: list[str] | None = None) -> int:
    """Read all cases and print the tables."""
    parser = argparse.ArgumentParser(prog="evals.offline_reader", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--questions", type=int, default=160, help="of each set")
    arguments = parser.parse_args(argv)
    data, n = arguments.data, arguments.questions
    if missing := [name for name in _FILES if not (data / name).exists()]:
        sys.exit(f"{data} has no {missing[0]}: name the folder of the data sets with --data")
    embedder = load()
    scorer = SentenceScorer(embedder)
    cases = [
        *_sample(embedder),
        *_squad(data, embedder, n),
        *_squad2(data, 2 * n),
        *_pubmedqa(data, embedder, n),
    ]
    reads = [_read(case, scorer) for case in cases]
    dev = [r for r in reads if r.case.dev]
    held = [r for r in reads if not r.case.dev and r.case.kind != "sample"]
    print("threshold, answerable, not; kept, refused, balanced, F1, best has answer\n\ndev")
    for kinds in _GROUPS:
        for t in _THRESHOLDS:
            print(f"{'+'.join(kinds):16} {t:.2f} {_report(dev, kinds, t)}")
    chosen = _choose(dev)
    print(f"\nheld, at the threshold that dev chooses ({THRESHOLD} is built in)")
    for kinds in _GROUPS:
        print(f"{'+'.join(kinds):16} {chosen:.2f} {_report(held, kinds, chosen)}")
    print("\nsample")
    for t in (chosen - 0.05, chosen, chosen + 0.05):
        print(f"{'sample':16} {t:.2f} {_report(reads, ('sample',), t)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
