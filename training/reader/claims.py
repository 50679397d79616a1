"""Lessons of support: a claim, a text, and whether the text supports it, contradicts it, or says nothing of it.

From SciFact, HealthVer, Evidence Inference's labels, PubMedQA's and BioASQ's verdicts; and from the abstracts themselves:
a sentence supports itself, and contradicts what a rule made of it by another number, direction or negation.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from posology.text.sentences import split
from posology.types import Sentence, Stance
from training.gold import rows
from training.pruner_articles import ARTICLES, PROMPTS, is_prose, lower
from training.pruner_cases import CLAIMS, POOL, fine_starts, part_of
from training.reader.cases import (
    BIOASQ,
    CONCLUDES,
    PUBMEDQA,
    Lesson,
    unheaded,
)

HEALTHVER = "healthver_dev.jsonl.gz"
SUPPORTS, CONTRADICTS, SILENT = range(len(Stance))
#: Sentences of abstracts that are claims of themselves.
OWN = 3_000
_OPPOSITES = (
    ("increased", "decreased"),
    ("increases", "decreases"),
    ("increase", "decrease"),
    ("increasing", "decreasing"),
    ("higher", "lower"),
    ("high", "low"),
    ("greater", "smaller"),
    ("more", "less"),
    ("improved", "worsened"),
    ("improves", "worsens"),
    ("longer", "shorter"),
    ("reduced", "increased"),
    ("reduces", "increases"),
    ("superior", "inferior"),
    ("effective", "ineffective"),
    ("positive", "negative"),
    ("better", "worse"),
    ("elevated", "reduced"),
    ("safe", "unsafe"),
    ("upregulated", "downregulated"),
    ("activates", "inhibits"),
    ("promotes", "prevents"),
    ("associated with", "not associated with"),
)
_FLIPS = {a: b for pair in _OPPOSITES for a, b in (pair, pair[::-1])}
_FLIP = re.compile(r"\b(" + "|".join(sorted(_FLIPS, key=len, reverse=True)) + r")\b")
_VERB = re.compile(r"\b(is|are|was|were|did|does|do|has|have|can|could|may|should)\b(?! not)")
_NOT = re.compile(r" (?:not|no)\b")
_NUMBER = re.compile(r"(?<![\w.])\d{1,4}(?:\.\d+)?(?![\w]|\.\d)")
_CLAIMS = re.compile(
    r"\b(is|are|does|do|can|reduces?|increases?|improves?|predicts?|prevents?|inhibits?|affects?|protects?|"
    r"promotes?|induces?|enhances?|decreases?|regulates?|mediates?|requires?|attenuates?)\b"
)


def claims(data: Path, seed: int = 0) -> Iterator[Lesson]:
    """Yield the lessons of all sets and parts, always in the same order."""
    pool = rows(data / POOL)
    yield from scifact(data, pool, random.Random(f"scifact-claims:{seed}"))
    yield from healthver(data)
    yield from trials(data, random.Random(f"trials-claims:{seed}"))
    yield from pubmedqa(data)
    yield from bioasq(data, random.Random(f"bioasq-claims:{seed}"))
    yield from abstracts(pool, random.Random(f"own-claims:{seed}"))


def claim(origin: str, part: str, document: str, asked: str, text: str, stance: int) -> Lesson:
    """Return a lesson of support."""
    text = " ".join(text.split())
    return Lesson(
        origin=origin,
        part=part,
        document=document,
        asked=" ".join(asked.split()),
        text=text,
        sentences=(Sentence(start=0, end=len(text)),),
        stance=stance,
    )


def scifact(data: Path, pool: Sequence[Mapping[str, Any]], rng: random.Random) -> Iterator[Lesson]:
    """Yield claims with their rationales, and with other sentences of the documents that they cite."""
    docs = {row["id"]: row for row in pool if row["source"] == "scifact"}
    for row in rows(data / CLAIMS):
        for number in row["cited_doc_ids"]:
            doc = docs.get(f"scifact:{number}")
            if doc is None:
                continue
            text, part = doc["text"], part_of(str(number))
            sentences = split(text)
            starts = fine_starts(text, sentences)
            ends = [*starts[1:], len(text)]
            evidence = row["evidence"].get(str(number))
            marked: set[int] = set()
            if evidence is not None:
                stance = SUPPORTS if evidence["label"] == "SUPPORT" else CONTRADICTS
                for group in evidence["sentences"]:
                    if group and max(group) < len(starts):
                        marked |= set(group)
                        words = " ".join(text[starts[k] : ends[k]].strip() for k in group)
                        yield claim("scifact", part, str(number), row["claim"], words, stance)
                        first, last = max(0, min(group) - 1), min(len(starts), max(group) + 2)
                        around = text[starts[first] : ends[last - 1]]
                        yield claim("scifact", part, str(number), row["claim"], around, stance)
            free = [k for k in range(len(starts)) if not marked & {k - 1, k, k + 1}]
            for k in rng.sample(free, min(2, len(free))):
                words = text[starts[k] : ends[min(k + rng.randrange(2), len(ends) - 1)]]
                yield claim("scifact", part, str(number), row["claim"], words, SILENT)


def healthver_part(row: Mapping[str, Any]) -> str:
    """Return the part of a claim of HealthVer."""
    return part_of(f"healthver:{row['claim']}")


def healthver(data: Path) -> Iterator[Lesson]:
    """Yield HealthVer's claims with their evidence."""
    stances = {"Supports": SUPPORTS, "Refutes": CONTRADICTS, "Neutral": SILENT}
    for row in rows(data / HEALTHVER):
        for one in row["evidence"]:
            yield claim(
                "healthver",
                healthver_part(row),
                row["claim"],
                row["claim"],
                one["text"],
                stances[one["label"]],
            )


def trials(data: Path, rng: random.Random) -> Iterator[Lesson]:
    """Yield what Evidence Inference's labels say, the opposite, and both beside unmarked text."""
    articles = {row["pmcid"].removeprefix("PMC"): row["text"] for row in rows(data / ARTICLES)}
    wordings = {
        "significantly increased": "{i} significantly increased {o} compared with {c}.",
        "significantly decreased": "{i} significantly decreased {o} compared with {c}.",
        "no significant difference": "There was no significant difference in {o} between {i} and {c}.",
    }
    for prompt in rows(data / PROMPTS):
        text = articles.get(prompt["pmcid"])
        given = [a for a in prompt["annotations"] or () if is_prose(a) and a["label"] in wordings]
        if text is None or not given:
            continue
        document = f"PMC{prompt['pmcid']}"
        part = part_of(document)
        filled = {
            label: words.format(
                i=lower(prompt["intervention"]),
                c=lower(prompt["comparator"]),
                o=lower(prompt["outcome"]),
            )
            for label, words in wordings.items()
        }
        for one in given[:2]:
            wrong = rng.choice([label for label in wordings if label != one["label"]])
            evidence = one["evidence"]
            yield claim("trials", part, document, filled[one["label"]], evidence, SUPPORTS)
            yield claim("trials", part, document, filled[wrong], evidence, CONTRADICTS)
        sentences = split(text)
        away = sentences[rng.randrange(len(sentences))].of(text)
        if len(away) > 60 and all(away[:60] not in one["evidence"] for one in given):
            said = rng.choice(list(filled.values()))
            yield claim("trials", part, document, said, away[:600], SILENT)


def pubmedqa(data: Path) -> Iterator[Lesson]:
    """Yield PubMedQA's questions, answered yes and no, beside the authors' conclusion."""
    for row in rows(data / PUBMEDQA):
        if row["answer"] not in ("yes", "no"):
            continue
        document = f"pmid:{row['pmid']}"
        yield from _answered(
            "pubmedqa", document, row["question"], row["long_answer"], row["answer"]
        )


def bioasq(data: Path, rng: random.Random) -> Iterator[Lesson]:
    """Yield BioASQ's yes-no questions, answered yes and no, beside a gold snippet."""
    for row in rows(data / BIOASQ):
        answer = str(row.get("exact_answer") or "").strip("[]'\" ").lower()
        if row["type"] != "yesno" or answer not in ("yes", "no") or not row["snippets"]:
            continue
        for one in rng.sample(row["snippets"], min(2, len(row["snippets"]))):
            if len(one["text"]) < 900:
                document = f"bioasq:{row['id']}"
                yield from _answered("bioasq", document, row["body"], one["text"], answer)


def _answered(
    origin: str, document: str, question: str, text: str, answer: str
) -> Iterator[Lesson]:
    part = part_of(document)
    for said in ("yes", "no"):
        stance = SUPPORTS if said == answer else CONTRADICTS
        yield claim(origin, part, document, f"{question} {said.title()}.", text, stance)


def abstracts(pool: Sequence[Mapping[str, Any]], rng: random.Random) -> Iterator[Lesson]:
    """Yield sentences as claims of themselves, changed ones, and titles beside conclusions."""
    order = [i for i, row in enumerate(pool) if row["source"] not in ("scifact", "pubmedqa")]
    rng.shuffle(order)
    made = 0
    last = ""
    for i in order:
        row = pool[i]
        found = unheaded(row["text"])
        if found is None:
            continue
        text, sentences, labels = found
        ends = [k for k, label in enumerate(labels) if label.startswith(CONCLUDES)]
        told = [k for k, label in enumerate(labels) if label.startswith(("RESULT", "FINDING"))]
        if not ends or not told:
            continue
        part = part_of(row["id"])
        k = rng.choice(ends + told)
        own = sentences[k].of(text)
        around = text[
            sentences[max(0, k - 1)].start : sentences[min(k + 1, len(sentences) - 1)].end
        ]
        yield claim("own", part, row["id"], own, around, SUPPORTS)
        for changed in changes(own, rng)[:2]:
            yield claim("own", part, row["id"], changed, around, CONTRADICTS)
        conclusion = text[sentences[ends[0]].start :]
        title = (row.get("title") or "").strip().strip("[]").rstrip(".")
        if _CLAIMS.search(title) and not title.endswith("?"):
            yield claim("own", part, row["id"], title, conclusion, SUPPORTS)
            for changed in changes(title, rng)[:1]:
                yield claim("own", part, row["id"], changed, conclusion, CONTRADICTS)
        if last:
            yield claim("own", part, row["id"], own, last, SILENT)
        if part == "train":
            last = conclusion
        other = sentences[rng.randrange(len(sentences))]
        if abs(sentences.index(other) - k) > 2:
            yield claim("own", part, row["id"], own, other.of(text), SILENT)
        made += 1
        if made == OWN:
            return


def changes(text: str, rng: random.Random) -> list[str]:
    """Return what a sentence becomes by one changed direction, negation or number, in random order."""
    changed = []
    if flips := list(_FLIP.finditer(text)):
        match = rng.choice(flips)
        changed.append(text[: match.start()] + _FLIPS[match[0]] + text[match.end() :])
    if denial := _NOT.search(text):
        changed.append(text[: denial.start()] + text[denial.end() :])
    elif verb := _VERB.search(text):
        changed.append(f"{text[: verb.end()]} not{text[verb.end() :]}")
    if numbers := list(_NUMBER.finditer(text)):
        match = rng.choice(numbers)
        value = float(match[0]) * rng.choice((0.3, 0.5, 1.5, 2, 3))
        digits = len(match[0].partition(".")[2])
        written = f"{value:.{digits}f}"
        if written != match[0]:
            changed.append(text[: match.start()] + written + text[match.end() :])
    rng.shuffle(changed)
    return changed
