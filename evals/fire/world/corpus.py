"""Documents of a run: each says which one it is and in which revision, so that every quote has one place."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_DRUGS = (
    "aspirin",
    "warfarin",
    "metformin",
    "statins",
    "heparin",
    "insulin",
    "digoxin",
    "losartan",
)
_ENDS = ("stroke", "bleeding", "death", "infarction", "falls", "anaemia", "sepsis", "fracture")
#: documents of the first ingest
COUNT = 120


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """A record of the literature."""

    id: str
    title: str
    text: str

    @property
    def line(self) -> str:
        """Return it as a line of JSON."""
        return json.dumps({"id": self.id, "title": self.title, "text": self.text})


def document(number: int, revision: int) -> Document:
    """Return a document in a revision, whose sentences stand elsewhere than in the next one."""
    draw = random.Random(f"{number}:{revision}")
    drug, end = _DRUGS[number % 8], _ENDS[number // 8 % 8]
    verb = draw.choice(("lowered", "raised", "did not change"))
    sentences = [
        f"Trial {number} compared {drug} with placebo in {draw.randint(40, 4_000)} adults.",
        f"In revision {revision} of trial {number}, {drug} {verb} the risk of {end}.",
        *(f"Group {part} of trial {number} had {draw.randint(2, 60)} events." for part in range(revision % 7)),
        f"No other harm of {drug} was seen in trial {number}.",
    ]  # fmt: skip
    if revision % 2:
        # offsets of all sentences differ between revisions
        sentences.reverse()
    return Document(
        id=f"doc:{number}",
        title=f"{drug.title()} and {end}, trial {number}",
        text=" ".join(sentences),
    )


def write(path: Path, documents: Iterable[Document]) -> None:
    """Write documents as JSON Lines, whole or not at all."""
    draft = path.with_suffix(".part")
    draft.write_text("".join(f"{one.line}\n" for one in documents), encoding="utf-8")
    draft.replace(path)


def question(draw: random.Random, word: str, number: int) -> str:
    """Return a question that has a tenant's word and a number, and so is asked once."""
    drug, end = draw.choice(_DRUGS), draw.choice(_ENDS)
    return f"Does {drug} change the risk of {end} in adults? Reference {word}, case {number}."
