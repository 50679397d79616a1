"""Lessons of support: a claim, a text, and whether the text supports it, contradicts it, or is silent on it.

Claims that people wrote (the claims of the shared data, SciFact, HealthVer), questions with "Yes." and "No." behind them (those of
the shared data, PubMedQA, BioASQ), pairs of plain inference (SNLI), and claims that machines changed (FactCG, CovidFact), of which is
only known that the text does not support them. What is silent without being written so: other sentences of the documents that
SciFact's claims cite, and what answers another question on the same subject.
A document is in one part, whichever set it is in; but HealthVer is split by claim, and BioASQ by question, which share texts:
where the judge is measured, :func:`~training.pruner_cases.alone` leaves out those whose texts are in a lesson.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from posology.llm.offline.wording import asks_for_a_side
from posology.text.sentences import split
from posology.types import Stance
from training.gold import rows
from training.pruner_cases import (
    CLAIMS,
    POOL,
    fine_starts,
    part_of,
)
from training.reader.abstracts import PUBMEDQA, WRITTEN
from training.reader.cases import BIOASQ

SNLI = "snli_part.jsonl.gz"
FACTCG = "factcg_part.jsonl.gz"
COVIDFACT = "covidfact.jsonl.gz"
HEALTHVER = "healthver_dev.jsonl.gz"
#: sets that are learned first, and once: they are general, or noisy
GENERAL = ("snli", "factcg", "covidfact")
SUPPORTS, CONTRADICTS, SILENT = range(len(Stance))
#: contradicted or silent: the set does not say which
UNSUPPORTED = len(Stance)
#: nobody has judged the pair
UNKNOWN = len(Stance) + 1
#: longest text behind a question, characters
LONGEST = 900
_SNLI = {"entailment": SUPPORTS, "contradiction": CONTRADICTS, "neutral": SILENT}
_HEALTHVER = {"Supports": SUPPORTS, "Refutes": CONTRADICTS, "Neutral": SILENT}


@dataclass(frozen=True, kw_only=True, slots=True)
class Lesson:
    """A claim, a text, and what the text says of it."""

    #: name of its set
    origin: str
    #: ``train``, ``dev`` or ``test``
    part: str
    claim: str
    text: str
    #: place in :class:`~posology.types.Stance`, :data:`UNSUPPORTED` or :data:`UNKNOWN`
    stance: int
    #: whether the pair was written, not made of one
    written: bool = True
    #: probabilities of the stances by a teacher
    taught: tuple[float, float, float] | None = None


def lessons(data: Path, seed: int = 0) -> Iterator[Lesson]:
    """Yield the lessons of all sets and parts, always in the same order."""
    pool = rows(data / POOL)
    texts = {row["id"]: row["text"] for row in pool}
    yield from claims(data, texts)
    yield from scifact(data, pool, random.Random(f"scifact:{seed}"))
    yield from healthver(data)
    for row in rows(data / SNLI):
        yield _general("snli", row["hypothesis"], row["premise"], _SNLI[row["label"]])
    for row in rows(data / FACTCG):
        stance = SUPPORTS if row["label"] else UNSUPPORTED
        yield _general("factcg", row["claim"], row["text"], stance)
    for row in rows(data / COVIDFACT):
        stance = SUPPORTS if row["label"] == "SUPPORTED" else UNSUPPORTED
        yield _general("covidfact", row["claim"], " ".join(row["evidence"]), stance)
    yield from questions(data, texts, random.Random(f"questions:{seed}"))
    yield from pubmedqa(data)
    yield from bioasq(data, random.Random(f"bioasq:{seed}"))


def _general(origin: str, claim: str, text: str, stance: int) -> Lesson:
    return Lesson(origin=origin, part="train", claim=claim, text=text, stance=stance)


def claims(data: Path, texts: Mapping[str, str]) -> Iterator[Lesson]:
    """Yield the written claims beside their evidence."""
    for row in rows(data / WRITTEN):
        about = {"origin": "claims", "part": part_of(row["id"])}
        sentences = sentences_of(texts[row["id"]])
        for stance, kind in enumerate(Stance):
            for one in row[kind.value]:
                evidence = [k - 1 for k in one["s"]]
                yield _beside(about, one["claim"], sentences, evidence, stance)


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text, by the project's own splitter."""
    return [one.of(text).strip() for one in split(text)]


def _beside(
    about: Mapping[str, Any],
    claim: str,
    sentences: Sequence[str],
    evidence: Sequence[int],
    stance: int,
    *,
    written: bool = True,
) -> Lesson:
    """Return a claim beside sentences."""
    return Lesson(
        **about,
        claim=claim,
        text=" ".join(sentences[k].strip() for k in evidence),
        stance=stance,
        written=written,
    )


def scifact(data: Path, pool: Sequence[Mapping[str, Any]], rng: random.Random) -> Iterator[Lesson]:
    """Yield SciFact's claims beside their rationales, and beside other sentences of the documents that they cite."""
    docs = {row["id"]: row for row in pool if row["source"] == "scifact"}
    for row in rows(data / CLAIMS):
        for number in row["cited_doc_ids"]:
            name = f"scifact:{number}"
            if (doc := docs.get(name)) is None:
                continue
            text = doc["text"]
            starts = fine_starts(text, split(text))
            ends = [*starts[1:], len(text)]
            sentences = [text[a:b] for a, b in zip(starts, ends, strict=True)]
            about = {"origin": "scifact", "part": part_of(name)}
            evidence = row["evidence"].get(str(number))
            marked: set[int] = set()
            for group in evidence["sentences"] if evidence else ():
                if group and max(group) < len(sentences):
                    marked |= set(group)
                    stance = SUPPORTS if evidence["label"] == "SUPPORT" else CONTRADICTS
                    yield _beside(about, row["claim"], sentences, group, stance)
            free = [k for k in range(len(sentences)) if not marked & {k - 1, k, k + 1}]
            for k in rng.sample(free, min(1, len(free))):
                yield _beside(about, row["claim"], sentences, [k], SILENT, written=False)


def healthver(data: Path) -> Iterator[Lesson]:
    """Yield HealthVer's claims with their evidence, split by claim."""
    for row in rows(data / HEALTHVER):
        document = f"healthver:{row['claim']}"
        for one in row["evidence"]:
            yield Lesson(
                origin="healthver",
                part=part_of(document),
                claim=row["claim"],
                text=one["text"],
                stance=_HEALTHVER[one["label"]],
            )


def questions(data: Path, texts: Mapping[str, str], rng: random.Random) -> Iterator[Lesson]:
    """Yield the written questions, answered, and their near misses, beside the sentences that answer the former."""
    for row in rows(data / WRITTEN):
        about = {"origin": "questions", "part": part_of(row["id"])}
        sentences = sentences_of(texts[row["id"]])
        evidence = [k - 1 for k in row["answer_sentences"]]
        for claim, stance in answered(row["question"], row["verdict"]):
            yield _beside(about, claim, sentences, evidence, stance)
        if asks_for_a_side(row["near_miss"]):
            claim = f"{row['near_miss']} {rng.choice(('Yes.', 'No.'))}"
            yield _beside(about, claim, sentences, evidence, SILENT)


def answered(question: str, answer: str | None) -> Iterator[tuple[str, int]]:
    """Yield a question answered yes and no, and the stance of what answers it; nothing if it is answered otherwise."""
    if answer in ("yes", "no"):
        for said in ("yes", "no"):
            yield f"{question} {said.title()}.", SUPPORTS if said == answer else CONTRADICTS


def pubmedqa(data: Path) -> Iterator[Lesson]:
    """Yield PubMedQA's questions, answered yes and no, beside the authors' conclusion."""
    for row in rows(data / PUBMEDQA):
        document = f"pmid:{row['pmid']}"
        for claim, stance in answered(row["question"], row["answer"]):
            yield Lesson(
                origin="pubmedqa",
                part=part_of(document),
                claim=claim,
                text=row["long_answer"],
                stance=stance,
            )


def bioasq(data: Path, rng: random.Random) -> Iterator[Lesson]:
    """Yield BioASQ's yes-no questions, answered yes and no, beside a gold snippet."""
    for row in rows(data / BIOASQ):
        if row["type"] != "yesno":
            continue
        answer = str(row.get("exact_answer") or "").strip("[]'\" ").lower()
        document = f"bioasq:{row['id']}"
        some = [one["text"] for one in row["snippets"] if len(one["text"]) <= LONGEST]
        for text in rng.sample(some, min(1, len(some))):
            for claim, stance in answered(row["body"], answer):
                yield Lesson(
                    origin="bioasq",
                    part=part_of(document),
                    claim=claim,
                    text=text,
                    stance=stance,
                )
