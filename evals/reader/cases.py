"""Questions with the passages that are shown for them, on documents that no reader was trained or calibrated on.

Parts are those of :func:`training.pruner_cases.part_of`: ``test`` is measured, ``dev`` calibrates.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from posology.corpus.sample import notes_file, questions
from posology.index.embedders import load
from posology.text.sentences import split
from posology.types import Excerpt, Passage
from training.gold import rows
from training.pruner_articles import ARTICLES, FORMS, PROMPTS
from training.pruner_cases import (
    POOL,
    POOL_VECTORS,
    SQUAD,
    Words,
    alone,
    part_of,
    parts,
)
from training.reader.abstracts import PUBMEDQA, WRITTEN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder

BIOASQ = "bioasq_7b-10b.jsonl.gz"
FILES = (SQUAD, POOL, POOL_VECTORS, PUBMEDQA, BIOASQ, ARTICLES, PROMPTS, WRITTEN)
#: labels of PubMedQA's sections that tell a finding
FINDS = ("RESULT", "FINDING", "OUTCOME", "CONCLUSION", "INTERPRETATION")
#: passages a question, as in ``docs/concepts/offline-reader.md``
SHOWN = 5
#: notes of the sample that are shown for a question
NOTES = 8

Part = Literal["dev", "test"]
#: an excerpt's number and its sentence's
Place = tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A question with the passages shown."""

    #: questions about one document are not independent
    document: str
    question: str
    excerpts: tuple[Excerpt, ...]
    #: sentences that answer; empty for what no passage answers, or where they are not marked
    gold: frozenset[Place] = frozenset()
    answerable: bool = True
    #: yes, no or maybe, if known
    verdict: str = ""
    #: section of each sentence of the first excerpt, if known
    sections: tuple[str, ...] = ()


@dataclass(kw_only=True)
class Data:
    """The data sets, each read on first use."""

    folder: Path
    part: Part
    most: int
    embedder: SentenceTransformerEmbedder = field(default_factory=load)

    def few(self, found: Sequence[Any]) -> list[Any]:
        """Return as many as wanted, drawn always alike."""
        return random.Random(0).sample(list(found), min(self.most, len(found)))

    @cached_property
    def pool(self) -> tuple[list[dict[str, Any]], NDArray[np.float32]]:
        """Return the abstracts and their vectors."""
        vectors = np.load(self.folder / POOL_VECTORS).astype(np.float32)
        return rows(self.folder / POOL), vectors

    @cached_property
    def asked(self) -> list[dict[str, Any]]:
        """Return PubMedQA's questions of the part."""
        found = rows(self.folder / PUBMEDQA)
        return self.few([row for row in found if part_of(f"pmid:{row['pmid']}") == self.part])

    def squad(self, *, near: bool = False) -> list[Case]:
        """Return SQuAD's questions: the gold paragraph, unless ``near``, and the nearest by BM25 of the same article."""
        found = rows(self.folder / SQUAD)
        part = parts(dict(Counter(row["title"] for row in found)))
        own = [row for row in found if part[row["title"]] == self.part]
        words = Words(row["context"] for row in own)
        chosen = self.few([(i, qa) for i, row in enumerate(own) for qa in row["qas"]])
        return [_paragraphs(own, words, i, qa, near=near) for i, qa in chosen]

    def pubmedqa(self, *, near: bool = False) -> list[Case]:
        """Return PubMedQA's questions: their abstract, unless ``near``, and the nearest of the pool."""
        abstracts, vectors = self.pool
        asked = self.embedder.embed_queries([row["question"] for row in self.asked])
        cases = []
        for row, vector in zip(self.asked, asked, strict=True):
            own = f"pmid:{row['pmid']}"
            order = np.argsort(-(vectors @ vector), kind="stable")[: SHOWN + 1].tolist()
            others = [abstracts[i] for i in order if abstracts[i]["id"] != own]
            gold = [] if near else [one for one in abstracts if one["id"] == own]
            shown = [*gold, *others][:SHOWN]
            cases.append(
                Case(
                    document=own,
                    question=row["question"],
                    excerpts=tuple(
                        excerpt(one["text"], one.get("title") or "", one["id"]) for one in shown
                    ),
                    answerable=bool(gold),
                )
            )
        return cases

    def written(self, *, near: bool = False) -> list[Case]:
        """Return questions that people wrote for an abstract, or ``near`` ones that it does not answer, beside it alone."""
        texts = {row["id"]: row for row in self.pool[0]}
        cases = []
        for row in self.few(
            [r for r in rows(self.folder / WRITTEN) if part_of(r["id"]) == self.part]
        ):
            own = texts[row["id"]]
            shown = excerpt(own["text"], own.get("title") or "", own["id"])
            gold = () if near else row["answer_sentences"]
            cases.append(
                Case(
                    document=own["id"],
                    question=row["near_miss" if near else "question"],
                    excerpts=(shown,),
                    gold=frozenset((0, k - 1) for k in gold),
                    answerable=not near,
                )
            )
        return cases

    def abstracts(self) -> list[Case]:
        """Return PubMedQA's questions on their own abstract, with its sections and the verdict."""
        cases = []
        for row in self.asked:
            text = " ".join(row["contexts"])
            one = excerpt(text, "", f"pmid:{row['pmid']}")
            ends = np.cumsum([len(section) + 1 for section in row["contexts"]])
            at = [
                int(np.searchsorted(ends, sentence.start, side="right"))
                for sentence in one.sentences
            ]
            cases.append(
                Case(
                    document=one.passage.id,
                    question=row["question"],
                    excerpts=(one,),
                    verdict=row["answer"],
                    sections=tuple(row["labels"][min(i, len(row["labels"]) - 1)] for i in at),
                )
            )
        return cases

    def articles(self) -> list[Case]:
        """Return prompts of Evidence Inference over whole articles, at most two an article."""
        texts = {row["pmcid"].removeprefix("PMC"): row["text"] for row in rows(self.folder / ARTICLES)}  # fmt: skip
        found: dict[str, list[dict[str, Any]]] = {}
        for prompt in rows(self.folder / PROMPTS):
            name = prompt["pmcid"].removeprefix("PMC")
            if part_of(f"PMC{name}") == self.part and name in texts and _spans(prompt):
                found.setdefault(name, []).append(prompt)
        chosen = self.few([one for prompts in found.values() for one in prompts[:2]])
        return [_article(one, texts[one["pmcid"].removeprefix("PMC")]) for one in chosen]

    def sample(self) -> list[Case]:
        """Return the sample's questions with the nearest notes. They are not split: nothing was fitted to them."""
        import json

        with notes_file() as path:
            notes = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        shown = [excerpt(row["text"], row.get("title") or "", row["id"]) for row in notes]
        encoded = self.embedder.embed_passages([one.passage for one in shown], [()] * len(shown))
        vectors = np.stack([one.vector for one in encoded])
        cases = []
        for question in questions():
            (vector,) = self.embedder.embed_queries([question.query.text])
            order = np.argsort(-(vectors @ vector), kind="stable")[:NOTES]
            cases.append(
                Case(
                    document=question.id,
                    question=question.query.text,
                    excerpts=tuple(shown[i] for i in order.tolist()),
                    answerable=not question.unanswerable,
                )
            )
        return cases

    def sixteen(self) -> list[Case]:
        """Return questions with sixteen abstracts, for latency."""
        abstracts, vectors = self.pool
        asked = self.embedder.embed_queries([row["question"] for row in self.asked])
        nearest = (np.argsort(-(vectors @ v), kind="stable")[:16].tolist() for v in asked)
        return [
            Case(
                document=f"pmid:{row['pmid']}",
                question=row["question"],
                excerpts=tuple(
                    excerpt(
                        abstracts[i]["text"], abstracts[i].get("title") or "", abstracts[i]["id"]
                    )
                    for i in order
                ),
            )
            for row, order in zip(self.asked, nearest, strict=True)
        ]

    @cached_property
    def bioasq_rows(self) -> list[dict[str, Any]]:
        """BioASQ's questions with snippets, without those of an article that a question of another part has, too."""
        found = [row for row in rows(self.folder / BIOASQ) if row["snippets"]]
        return alone(
            found,
            self.part,
            named=lambda row: f"bioasq:{row['id']}",
            texts=lambda row: [one["document"] for one in row["snippets"]],
        )

    def bioasq(self) -> list[Case]:
        """Return BioASQ's yes-no questions with their gold snippets."""
        cases = []
        for row in self.bioasq_rows:
            answer = str(row.get("exact_answer") or "").strip("[]'\" ").lower()
            document = f"bioasq:{row['id']}"
            if row["type"] != "yesno" or answer not in ("yes", "no"):
                continue
            shown = list(dict.fromkeys(one["text"] for one in row["snippets"]))[:SHOWN]
            cases.append(
                Case(
                    document=document,
                    question=row["body"],
                    excerpts=tuple(
                        excerpt(text, "", f"{document}:{i}") for i, text in enumerate(shown)
                    ),
                    verdict=answer,
                )
            )
        return self.few(cases)


def excerpt(text: str, title: str, name: str) -> Excerpt:
    """Return a passage of which everything is shown."""
    return Excerpt(passage=Passage(id=name, title=title, text=text), sentences=split(text))


def _paragraphs(
    own: Sequence[dict[str, Any]], words: Words, i: int, qa: dict[str, Any], *, near: bool
) -> Case:
    title = own[i]["title"]
    scores = words.scores(qa["question"])
    others = [j for j, row in enumerate(own) if row["title"] == title and j != i]
    order = sorted(others, key=lambda j: -float(scores[j]))
    shown = order[:SHOWN] if near else [i, *order[: SHOWN - 1]]
    excerpts = tuple(
        excerpt(own[j]["context"], title.replace("_", " "), f"squad:{title}:{j}") for j in shown
    )
    starts = {answer["answer_start"] for answer in qa["answers"]}
    gold = frozenset(
        (0, k)
        for k, sentence in enumerate(excerpts[0].sentences)
        if not near and any(sentence.start <= at < sentence.end for at in starts)
    )
    return Case(
        document=title,
        question=qa["question"],
        excerpts=excerpts,
        gold=gold,
        answerable=not near,
    )


def _spans(prompt: dict[str, Any]) -> list[tuple[int, int]]:
    """Return the annotated spans of prose: longer than a cell of a table."""
    found = prompt["annotations"] or ()
    return [(one["start"], one["end"]) for one in found if one["end"] - one["start"] >= 20]


def _article(prompt: dict[str, Any], text: str) -> Case:
    title = text.split("\n", 2)[1].strip() if text.startswith("TITLE:") else ""
    name = f"PMC{prompt['pmcid'].removeprefix('PMC')}"
    one = excerpt(text, title[:200], name)
    spans = _spans(prompt)
    gold = frozenset(
        (0, k)
        for k, sentence in enumerate(one.sentences)
        if any(_overlap(sentence.start, sentence.end, a, b) for a, b in spans)
    )
    asked = FORMS[0].format(i=prompt["intervention"], c=prompt["comparator"], o=prompt["outcome"])
    return Case(document=name, question=asked, excerpts=(one,), gold=gold)


def _overlap(start: int, end: int, a: int, b: int) -> bool:
    return min(end, b) - max(start, a) > 0.5 * min(end - start, b - a)
