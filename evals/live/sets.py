"""Questions with known answers for :mod:`evals.live`: six sets of the shared data and the packaged sample, in two halves by ids.

Prompts are chosen on the half ``dev``; figures are of the half ``test``.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from posology.corpus import sample
from posology.types import Form

#: passages of the pool that no question is about
_OTHERS = 400
#: questions of a set's half, at most: their passages are in the index
MOST = 60
#: a question whose answer, with the right sentence, was once called contradicted
_ASPIRIN = "Does aspirin reduce the risk of preeclampsia?"
#: snippets of a BioASQ question that its passage holds
_SNIPPETS = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A question, and what is known of its answer."""

    set: str
    id: str
    question: str
    form: Form = Form.FREE
    #: right verdict; ``None``: the form has none
    verdict: str | None = None
    #: words of which one answers; empty: unknown
    words: tuple[str, ...] = ()
    #: whether the passages answer it
    answerable: bool = True
    #: id of the passage that does, or nearly does
    passage: str = ""
    #: numbers of its sentences that answer, from 1; empty: unknown
    sentences: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        """Name of the question among all sets."""
        return f"{self.set}/{self.id}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """A passage of the index."""

    id: str
    title: str
    text: str


Read = Callable[[Path], Iterator[tuple[Asked, Document]]]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _pubmedqa(data: Path) -> Iterator[tuple[Asked, Document]]:
    for row in _lines(data / "pubmedqa_train.jsonl.gz"):
        place = f"pubmedqa:{row['pmid']}"
        yield (
            Asked(
                set="pubmedqa",
                id=row["pmid"],
                question=row["question"],
                form=Form.YES_NO_MAYBE,
                verdict=row["answer"],
                passage=place,
            ),
            Document(id=place, title="", text=" ".join(row["contexts"])),
        )


def _bioasq(data: Path, kind: str) -> Iterator[tuple[Asked, Document]]:
    for row in _lines(data / "bioasq_7b-10b.jsonl.gz"):
        if row["type"] != kind or not row.get("snippets"):
            continue
        exact, place = row["exact_answer"], f"bioasq:{row['id']}"
        snippets = dict.fromkeys(one["text"].strip() for one in row["snippets"])
        yield (
            Asked(
                set=f"bioasq {kind}",
                id=row["id"],
                question=row["body"],
                form=Form.YES_NO if kind == "yesno" else Form.FREE,
                verdict=exact.lower() if kind == "yesno" else None,
                words=() if kind == "yesno" else tuple(_flat(exact)),
                passage=place,
            ),
            Document(id=place, title="", text=" ".join(islice(snippets, _SNIPPETS))),
        )


def _flat(given: Any) -> Iterator[str]:
    if isinstance(given, str):
        yield given
    else:
        for one in given:
            yield from _flat(one)


def _yesno(data: Path) -> Iterator[tuple[Asked, Document]]:
    return _bioasq(data, "yesno")


def _factoid(data: Path) -> Iterator[tuple[Asked, Document]]:
    return _bioasq(data, "factoid")


def _squad(data: Path) -> Iterator[tuple[Asked, Document]]:
    for number, row in enumerate(_lines(data / "squad11_dev_part1.jsonl.gz")):
        place = f"squad:{number}"
        asked = row["qas"][number % len(row["qas"])]
        yield (
            Asked(
                set="squad",
                id=asked["id"],
                question=asked["question"],
                words=tuple(dict.fromkeys(one["text"] for one in asked["answers"])),
                passage=place,
            ),
            Document(id=place, title=row["title"].replace("_", " "), text=row["context"]),
        )


def _claims(data: Path) -> Iterator[tuple[Asked, Document]]:
    pool = {row["id"]: row for row in _lines(data / "pool.jsonl.gz")}
    for row in _lines(data / "claims.jsonl.gz"):
        found = pool[row["id"]]
        form = {"yes_no": Form.YES_NO}.get(row["form"], Form.FREE)
        yield (
            Asked(
                set="claims",
                id=row["id"],
                question=row["question"],
                form=form,
                verdict=row["verdict"] if form is Form.YES_NO else None,
                passage=row["id"],
                sentences=tuple(row["answer_sentences"]),
            ),
            Document(id=row["id"], title=found.get("title") or "", text=found["text"]),
        )


def _near(data: Path) -> Iterator[tuple[Asked, Document]]:
    for row in _lines(data / "claims.jsonl.gz"):
        place = row["id"]
        yield (
            Asked(
                set="near misses",
                id=place,
                question=row["near_miss"],
                answerable=False,
                passage=place,
            ),
            # the question itself brings its passage
            Document(id=place, title="", text=""),
        )


def _notes() -> dict[str, Document]:
    with sample.notes_file() as path:
        rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        return {r["id"]: Document(id=r["id"], title=r["title"], text=r["text"]) for r in rows}


def _sample(_data: Path) -> Iterator[tuple[Asked, Document]]:
    notes = _notes()
    yield (
        Asked(
            set="sample",
            id="aspirin",
            question=_ASPIRIN,
            form=Form.YES_NO,
            verdict="yes",
            passage="note:preg-002",
        ),
        notes["note:preg-002"],
    )
    for one in sample.questions():
        if one.query.form is Form.CHOICE:
            continue
        place = one.evidence[0].passage_id if one.evidence else ""
        yield (
            Asked(
                set="sample",
                id=one.id,
                question=one.query.text,
                form=one.query.form,
                verdict=one.choice,
                answerable=not one.unanswerable,
                passage=place,
            ),
            notes.get(place, Document(id="", title="", text="")),
        )


#: the sets by their names
SETS: dict[str, Read] = {
    "pubmedqa": _pubmedqa,
    "bioasq yesno": _yesno,
    "bioasq factoid": _factoid,
    "squad": _squad,
    "claims": _claims,
    "near misses": _near,
    "sample": _sample,
}


#: prompts are chosen on the first, and figures are of the second
HALVES = ("dev", "test")


def half(one: Asked) -> str:
    """Return the half that a question is of; all questions on one passage are of the same."""
    return "dev" if zlib.crc32(one.passage.encode()) % 2 else "test"


@cache
def _set(data: Path, name: str) -> tuple[tuple[Asked, Document], ...]:
    return tuple(SETS[name](data))


def asked(data: Path, name: str, part: str) -> list[Asked]:
    """Return at most :data:`MOST` questions of a set's half, in an order that looks random and is always the same."""
    found = [one for one, _ in _set(data, name) if half(one) == part]
    return sorted(found, key=lambda one: zlib.crc32(one.key.encode()))[:MOST]


def documents(data: Path) -> list[Document]:
    """Return the passages of all questions, and others of the pool and the sample."""
    found: dict[str, Document] = {}
    for name in SETS:
        wanted = {one.passage for part in HALVES for one in asked(data, name, part)}
        for _, one in _set(data, name):
            if one.id in wanted and one.text:
                found.setdefault(one.id, one)
    for row in islice(_lines(data / "pool.jsonl.gz"), _OTHERS):
        found.setdefault(
            row["id"], Document(id=row["id"], title=row.get("title") or "", text=row["text"])
        )
    return list((found | _notes()).values())
