"""Lessons over the pool of abstracts, and those of all sets together."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from posology.text.sentences import split
from posology.types import Sentence
from training.gold import rows
from training.pruner_cases import POOL, POOL_VECTORS, part_of
from training.reader.cases import Lesson, abstract, bioasq, covid, scifact, squad, trials

PUBMEDQA = "pubmedqa_train.jsonl.gz"
WRITTEN = "claims.jsonl.gz"
#: Titles of abstracts that are taken as questions.
TITLES = 5_000
#: Questions for each one that stands beside a text of another set, too.
FAR = 6
#: A heading inside an abstract: capitals before a colon.
_HEADED = re.compile(r"(?:^|(?<=[.;]\s))([A-Z][A-Z /&,]{4,40}):\s*")
CONCLUDES = ("CONCLUSION", "INTERPRETATION", "IMPLICATION")
RESULTS = ("RESULT", "FINDING", "OUTCOME")
_WORD = re.compile(r"[a-z0-9]{3,}")


def lessons(data: Path, seed: int = 0) -> Iterator[Lesson]:
    """Yield the lessons of all sets and parts, always in the same order."""
    yield from squad(data, random.Random(f"squad:{seed}"))
    yield from trials(data, random.Random(f"trials:{seed}"))
    yield from covid(data, random.Random(f"covid:{seed}"))
    yield from bioasq(data, random.Random(f"bioasq:{seed}"))
    pool = rows(data / POOL)
    vectors = np.load(data / POOL_VECTORS).astype(np.float32)
    yield from scifact(data, pool, random.Random(f"scifact:{seed}"))
    yield from pubmedqa(data, pool, vectors, random.Random(f"pubmedqa:{seed}"))
    yield from titles(pool, vectors, random.Random(f"titles:{seed}"))
    yield from written(data, pool, vectors, random.Random(f"written:{seed}"))


def strangers(known: Sequence[Lesson], seed: int = 0) -> list[Lesson]:
    """Return one question in :data:`FAR` beside a text of another set: a reader must also refuse what is far off."""
    rng = random.Random(f"strangers:{seed}")
    found = []
    for one in known:
        other = rng.choice(known)
        if rng.random() < 1 / FAR and other.origin != one.origin:
            found.append(
                replace(
                    other, asked=one.asked, gold=frozenset(), open=frozenset(), span=None, far=True
                )
            )
    return found


def pubmedqa(
    data: Path,
    pool: Sequence[Mapping[str, Any]],
    vectors: np.ndarray[Any, Any],
    rng: random.Random,
) -> Iterator[Lesson]:
    """Yield PubMedQA's questions: the abstract without and with its conclusion, and near abstracts.

    Gold are the sentences under headings of results that share most words with the authors' conclusion, and the
    conclusion itself where it is shown.
    """
    place = {row["id"]: i for i, row in enumerate(pool)}
    for row in rows(data / PUBMEDQA):
        document = f"pmid:{row['pmid']}"
        part = part_of(document)
        about = {"origin": "pubmedqa", "part": part, "document": document}
        for ending in ("", row["long_answer"]):
            lesson = _sections(about, row, ending)
            if lesson is not None:
                yield lesson
        if document in place:
            for j in _neighbours(vectors, place[document], 8)[rng.randrange(4) :][:2]:
                other = pool[j]
                if part != "train" or part_of(other["id"]) == "train":
                    found = tuple(split(other["text"]))
                    yield abstract(about, row["question"], other, found, frozenset())


def _sections(about: Mapping[str, str], row: Mapping[str, Any], ending: str) -> Lesson | None:
    text, gold = "", set()
    sentences: list[Sentence] = []
    results: list[tuple[int, int]] = []
    wanted = set(_WORD.findall((row["long_answer"] + " " + row["question"]).lower()))
    labelled = [*zip(row["contexts"], row["labels"], strict=True)]
    for piece, label in [*labelled, *([(ending, "CONCLUSION")] if ending else [])]:
        for one in split(piece):
            at = len(sentences)
            if any(name in label.upper() for name in RESULTS):
                shared = len(wanted & set(_WORD.findall(one.of(piece).lower())))
                results.append((shared, at))
            if any(name in label.upper() for name in CONCLUDES):
                gold.add(at)
            sentences.append(Sentence(start=one.start + len(text), end=one.end + len(text)))
        text += piece + " "
    best = max((shared for shared, _ in results), default=0)
    if not results or best < 3:
        return None
    gold |= {at for shared, at in results if shared >= max(3, best - 1)}
    return Lesson(
        origin=about["origin"],
        part=about["part"],
        document=about["document"],
        asked=row["question"],
        text=text.rstrip(),
        sentences=tuple(sentences),
        gold=frozenset(gold),
        open=frozenset(at for _, at in results) - gold,
    )


def written(
    data: Path,
    pool: Sequence[Mapping[str, Any]],
    vectors: np.ndarray[Any, Any],
    rng: random.Random,
) -> Iterator[Lesson]:
    """Yield the questions that people wrote for abstracts: beside their abstract, and beside a near one.

    The question that they wrote for what the abstract does not say is beside it, too.
    """
    place = {row["id"]: i for i, row in enumerate(pool)}
    for row in rows(data / WRITTEN):
        own = pool[place[row["id"]]]
        sentences = tuple(split(own["text"]))
        about = {"origin": "written", "part": part_of(row["id"]), "document": row["id"]}
        gold = frozenset(k - 1 for k in row["answer_sentences"])
        yield abstract(about, row["question"], own, sentences, gold)
        yield abstract(about, row["near_miss"], own, sentences, ())
        for j in _neighbours(vectors, place[row["id"]], 8)[rng.randrange(6) :][:1]:
            other = pool[j]
            if part_of(other["id"]) in ("train", about["part"]):
                yield abstract(about, row["question"], other, tuple(split(other["text"])), ())


def titles(
    pool: Sequence[Mapping[str, Any]], vectors: np.ndarray[Any, Any], rng: random.Random
) -> Iterator[Lesson]:
    """Yield titles of abstracts with headings as questions: the conclusion answers, a near abstract does not.

    Headings are removed, because most abstracts have none; results are neither right nor wrong.
    """
    order = list(range(len(pool)))
    rng.shuffle(order)
    made = 0
    for i in order:
        row = pool[i]
        # test questions of other sets are about these
        if row["source"] in ("pubmedqa", "scifact") or not row.get("title"):
            continue
        found = unheaded(row["text"])
        if found is None:
            continue
        text, sentences, labels = found
        gold = {k for k, label in enumerate(labels) if label.startswith(CONCLUDES)}
        if not gold or len(gold) > 4 or len(sentences) < 5:
            continue
        results = {k for k, label in enumerate(labels) if label.startswith(RESULTS)}
        part = part_of(row["id"])
        about = {"origin": "titles", "part": part, "document": row["id"]}
        shown = {**row, "text": text}
        asked = row["title"].strip().strip("[]").rstrip(".")
        yield abstract(about, asked, shown, sentences, gold, titled=False, unmarked=results)
        for j in _neighbours(vectors, i, 12)[rng.randrange(6) :][:1]:
            other = pool[j]
            clean = unheaded(other["text"])
            if part_of(other["id"]) == part:
                body = other["text"] if clean is None else clean[0]
                yield abstract(
                    about, asked, {**other, "text": body}, tuple(split(body)), frozenset()
                )
        made += 1
        if made == TITLES:
            return


def unheaded(text: str) -> tuple[str, tuple[Sentence, ...], list[str]] | None:
    """Return an abstract without its headings, its sentences, and the heading that each stood under.

    ``None``: it has fewer than three headings.
    """
    marks = list(_HEADED.finditer(text))
    if len(marks) < 3:
        return None
    clean, sentences, labels = "", [], []
    ends = [*(m.start() for m in marks[1:]), len(text)]
    for mark, end in zip(marks, ends, strict=True):
        piece = text[mark.end() : end].strip().rstrip(";").strip()
        for one in split(piece):
            sentences.append(Sentence(start=one.start + len(clean), end=one.end + len(clean)))
            labels.append(mark[1].strip())
        clean += piece + " "
    return clean.rstrip(), tuple(sentences), labels


def _neighbours(vectors: np.ndarray[Any, Any], i: int, n: int) -> list[int]:
    """Return the nearest abstracts, best first, without the abstract itself."""
    scores = vectors @ vectors[i]
    best = np.argpartition(-scores, n + 1)[: n + 1]
    return [int(j) for j in best[np.argsort(-scores[best])] if j != i][:n]
