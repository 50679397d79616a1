"""Lessons of the cross-encoder: a question, a text, and the sentences of it that answer.

Sets with texts of their own are read here, those over the pool of abstracts in :mod:`training.reader.abstracts`. Each is
split by document as in :mod:`training.pruner_cases`: no text of a test or dev document is in a lesson, but for BioASQ, of which
questions share articles (:func:`~training.pruner_cases.alone` leaves them out where it is measured). Every lesson with an answer has a near miss beside
it: another text of the same article or topic that does not answer.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from posology.text.sentences import split
from posology.types import Sentence
from training.gold import rows
from training.pruner_articles import (
    ARTICLES,
    COVID,
    FORMS,
    PROMPTS,
    is_prose,
    lower,
)
from training.pruner_cases import (
    CLAIMS,
    SQUAD,
    UNANSWERABLE,
    Words,
    article_title,
    fine_starts,
    marked,
    part_of,
    parts,
)

Part = Literal["train", "dev", "test"]

BIOASQ = "bioasq_7b-10b.jsonl.gz"
_WORD = re.compile(r"[a-z0-9]{3,}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Lesson:
    """A question and a text."""

    #: name of its set
    origin: str
    part: str
    #: the document, for intervals
    document: str
    asked: str
    text: str
    sentences: tuple[Sentence, ...]
    #: read before the text
    heading: str = ""
    #: sentences that answer; empty: none does
    gold: frozenset[int] = frozenset()
    #: sentences that may answer, unmarked: neither right nor wrong
    open: frozenset[int] = frozenset()
    #: the words that answer, offsets into the text
    span: tuple[int, int] | None = None
    #: the text is of another subject than the question
    far: bool = False


def _nearest(words: Words, asked: str, allowed: Sequence[int], n: int) -> list[int]:
    scores = words.scores(asked)
    return sorted(allowed, key=lambda i: -float(scores[i]))[:n]


def squad(data: Path, rng: random.Random) -> Iterator[Lesson]:
    """Yield SQuAD 1.1's questions, each with a near paragraph of its article, and 2.0's without an answer."""
    paragraphs = rows(data / SQUAD)
    sizes: dict[str, int] = {}
    for row in paragraphs:
        sizes[row["title"]] = sizes.get(row["title"], 0) + 1
    part = parts(sizes)
    words = Words(row["context"] for row in paragraphs)
    own: dict[str, list[int]] = {}
    for i, row in enumerate(paragraphs):
        own.setdefault(row["title"], []).append(i)
    by_context = {row["context"]: row for row in paragraphs}
    for i, row in enumerate(paragraphs):
        near = [j for j in own[row["title"]] if j != i]
        for qa in row["qas"]:
            spans = sorted(
                (a["answer_start"], a["answer_start"] + len(a["text"])) for a in qa["answers"]
            )
            yield _paragraph(row, part, qa["question"], spans, rng)
            for j in _nearest(words, qa["question"], near, 3)[rng.randrange(3) :][:1]:
                yield _paragraph(paragraphs[j], part, qa["question"], [], rng)
    for row in rows(data / UNANSWERABLE):
        for qa in row["qas"]:
            if qa["is_impossible"]:
                yield _paragraph(by_context[row["context"]], part, qa["question"], [], rng)


def _paragraph(
    row: Mapping[str, Any],
    part: Mapping[str, str],
    question: str,
    spans: Sequence[tuple[int, int]],
    rng: random.Random,
) -> Lesson:
    text = row["context"]
    sentences = split(text)
    return Lesson(
        origin="squad",
        part=part[row["title"]],
        document=row["title"],
        asked=question,
        text=text,
        sentences=tuple(sentences),
        heading=f"{article_title(dict(row))}. ",
        gold=marked(sentences, spans) if spans else frozenset(),
        span=rng.choice(spans) if spans else None,
    )


def trials(data: Path, rng: random.Random) -> Iterator[Lesson]:
    """Yield Evidence Inference's prompts: texts around the marked spans, and others of the same article."""
    articles = {row["pmcid"].removeprefix("PMC"): row["text"] for row in rows(data / ARTICLES)}
    split_once: dict[str, tuple[Sentence, ...]] = {}
    for prompt in rows(data / PROMPTS):
        text = articles.get(prompt["pmcid"])
        given = [a for a in prompt["annotations"] or () if is_prose(a)]
        if text is None or not given:
            continue
        if prompt["pmcid"] not in split_once:
            split_once[prompt["pmcid"]] = tuple(split(text))
        sentences = split_once[prompt["pmcid"]]
        asked = comparison(prompt, rng)
        spans = [(a["start"], a["end"]) for a in given]
        gold = frozenset(k for k, s in enumerate(sentences) if any(_covers(s, a) for a in spans))
        document = f"PMC{prompt['pmcid']}"
        title = text.split("\n", 2)[1].strip() if text.startswith("TITLE:") else ""
        about = {"origin": "trials", "part": part_of(document), "document": document}
        taken: set[int] = set()
        for k in sorted(gold):
            if k in taken:
                continue
            first = max(0, k - rng.randrange(8))
            last = min(len(sentences), first + rng.choice((4, 6, 8, 10)))
            taken.update(range(first, last))
            yield _window(about, asked, title, text, sentences[first:last], first, gold)
        # sentences with the outcome's words that nobody marked: the near misses of the article
        wanted = set(_WORD.findall(prompt["outcome"].lower()))
        scored = [
            (len(wanted & set(_WORD.findall(s.of(text).lower()))), k)
            for k, s in enumerate(sentences)
            if k not in taken
        ]
        near = [k for n, k in sorted(scored, key=lambda one: (-one[0], one[1])) if n][:12]
        for k in rng.sample(near, min(2, len(near))):
            first = max(0, k - rng.randrange(6))
            last = min(len(sentences), first + rng.choice((4, 6, 8)))
            if not gold & set(range(first, last)):
                yield _window(about, asked, title, text, sentences[first:last], first, gold)


def comparison(prompt: Mapping[str, Any], rng: random.Random) -> str:
    """Return a question about a trial's comparison, in one of several wordings."""
    asked = rng.choice(FORMS).format(
        i=lower(prompt["intervention"]),
        c=lower(prompt["comparator"]),
        o=lower(prompt["outcome"]),
    )
    return asked[0].upper() + asked[1:]


def _covers(sentence: Sentence, span: tuple[int, int]) -> bool:
    shared = min(sentence.end, span[1]) - max(sentence.start, span[0])
    return shared > 0.5 * min(sentence.end - sentence.start, span[1] - span[0])


def _window(
    about: Mapping[str, str],
    asked: str,
    title: str,
    text: str,
    sentences: Sequence[Sentence],
    first: int,
    gold: frozenset[int],
) -> Lesson:
    begin, stop = sentences[0].start, sentences[-1].end
    return Lesson(
        origin=about["origin"],
        part=about["part"],
        document=about["document"],
        asked=asked,
        text=text[begin:stop],
        sentences=tuple(Sentence(start=s.start - begin, end=s.end - begin) for s in sentences),
        heading=f"{title[:200].rstrip('.')}. " if title else "",
        gold=frozenset(k - first for k in gold if first <= k < first + len(sentences)),
    )


def covid(data: Path, rng: random.Random) -> Iterator[Lesson]:
    """Yield CovidQA's questions: texts around the answer, and texts of other articles."""
    articles = []
    for row in rows(data / COVID):
        sentences = tuple(split(row["context"]))
        articles.append((row, sentences, row["context"].split("\n", 1)[0][:200]))
    for row, sentences, title in articles:
        document = str(row["document_id"])
        about = {"origin": "covid", "part": part_of(document), "document": document}
        for qa in row["qas"]:
            if qa.get("is_impossible") or not qa["answers"]:
                continue
            answer = qa["answers"][0]
            span = (answer["answer_start"], answer["answer_start"] + len(answer["text"].rstrip()))
            gold = frozenset(
                k for k, s in enumerate(sentences) if s.start < span[1] and s.end > span[0]
            )
            if not gold or len(gold) > 5:
                continue
            first = max(0, min(gold) - rng.randrange(6))
            last = min(len(sentences), max(first + rng.choice((4, 6, 8)), max(gold) + 1))
            yield _window(
                about, qa["question"], title, row["context"], sentences[first:last], first, gold
            )
            others = [
                one for one in articles if part_of(str(one[0]["document_id"])) == about["part"]
            ]
            other, theirs, name = rng.choice(others)
            if other is not row and len(theirs) > 8:
                at = rng.randrange(len(theirs) - 7)
                yield _window(
                    about,
                    qa["question"],
                    name,
                    other["context"],
                    theirs[at : at + 7],
                    0,
                    frozenset(),
                )


def bioasq(data: Path, rng: random.Random) -> Iterator[Lesson]:
    """Yield BioASQ's questions: gold snippets among others, and the nearest snippets of other questions."""
    found = [row for row in rows(data / BIOASQ) if row["snippets"]]
    near = Words(row["body"] for row in found)
    where = [part_of(f"bioasq:{row['id']}") for row in found]
    for i, row in enumerate(found):
        own = list(dict.fromkeys(s["text"].strip() for s in row["snippets"]))
        allowed = [j for j in range(len(found)) if j != i and where[j] == where[i]]
        rivals = _nearest(near, row["body"], allowed, 6)
        theirs = [s["text"].strip() for j in rivals for s in found[j]["snippets"][:3]]
        theirs = [text for text in dict.fromkeys(theirs) if text not in own]
        short = [text for text in own if 30 <= len(text) <= 700]
        fill = [text for text in theirs if 30 <= len(text) <= 500]
        about = {"origin": "bioasq", "part": where[i], "document": row["id"]}
        for gold in rng.sample(short, min(2, len(short))):
            beside = rng.sample(fill, min(rng.randrange(4), len(fill)))
            yield _collage(about, row["body"], [gold], beside, rng)
        if len(fill) > 1:
            yield _collage(about, row["body"], [], rng.sample(fill, min(3, len(fill))), rng)


def _collage(
    about: Mapping[str, str],
    asked: str,
    gold: Sequence[str],
    others: Sequence[str],
    rng: random.Random,
) -> Lesson:
    """Return snippets as one text."""
    pieces = [(text, True) for text in gold] + [(text, False) for text in others]
    rng.shuffle(pieces)
    text, wanted = "", set()
    sentences: list[Sentence] = []
    for piece, right in pieces:
        for one in split(piece):
            if right:
                wanted.add(len(sentences))
            sentences.append(Sentence(start=one.start + len(text), end=one.end + len(text)))
        text += piece + " "
    return Lesson(
        origin=about["origin"],
        part=about["part"],
        document=about["document"],
        asked=asked,
        text=text.rstrip(),
        sentences=tuple(sentences),
        gold=frozenset(wanted),
    )


def scifact(data: Path, pool: Sequence[Mapping[str, Any]], rng: random.Random) -> Iterator[Lesson]:
    """Yield SciFact's claims: the rationale's abstract, and the nearest abstract of its documents."""
    docs = [row for row in pool if row["source"] == "scifact"]
    place = {row["id"]: i for i, row in enumerate(docs)}
    words = Words(f"{row.get('title') or ''}. {row['text']}" for row in docs)
    for claim in rows(data / CLAIMS):
        cited = {f"scifact:{d}" for d in claim["cited_doc_ids"]}
        for doc, evidence in claim["evidence"].items():
            if (i := place.get(f"scifact:{doc}")) is None:
                continue
            text = docs[i]["text"]
            sentences = tuple(split(text))
            starts = fine_starts(text, sentences)
            wanted = {n for group in evidence["sentences"] for n in group}
            if not wanted or max(wanted) >= len(starts):
                continue
            spans = [(starts[w], starts[w] + 1) for w in wanted]
            part = part_of(f"scifact:{doc}")
            about = {"origin": "scifact", "part": part, "document": doc}
            yield abstract(about, claim["claim"], docs[i], sentences, marked(sentences, spans))
            allowed = [
                j
                for j, row in enumerate(docs)
                if row["id"] not in cited and (part_of(row["id"]) == "train" or part != "train")
            ]
            other = docs[rng.choice(_nearest(words, claim["claim"], allowed, 4))]
            yield abstract(about, claim["claim"], other, tuple(split(other["text"])), frozenset())


def abstract(
    about: Mapping[str, str],
    asked: str,
    row: Mapping[str, Any],
    sentences: tuple[Sentence, ...],
    gold: Iterable[int],
    *,
    titled: bool = True,
    unmarked: Iterable[int] = (),
) -> Lesson:
    """Return a whole abstract as a lesson.

    Args:
        about: origin, part and document.
        asked: the question.
        row: of the pool.
        sentences: of its text.
        gold: sentences that answer.
        titled: whether its title is read before it.
        unmarked: sentences that may answer.
    """
    title = (row.get("title") or "").strip().rstrip(".")
    return Lesson(
        origin=about["origin"],
        part=about["part"],
        document=about["document"],
        asked=asked,
        text=row["text"],
        sentences=sentences,
        heading=f"{title}. " if title and titled else "",
        gold=frozenset(gold),
        open=frozenset(unmarked),
    )
