"""A few questions in the form of BioASQ's, with the other files that its suites read."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evals.papers.bioasq import QUESTIONS, READ, SNIPPETS
from training.pruner_cases import part_of

DRUGS = (
    "aspirin", "metformin", "warfarin", "apixaban", "ibuprofen", "sertraline", "losartan", "digoxin",
    "insulin", "heparin", "codeine", "morphine", "lithium", "statins", "quinine", "atropine",
)  # fmt: skip
ORGANS = ("liver", "heart", "kidney", "lung")
#: of the question that shares twelve words with a text that the pruner may have read
SEEN = "Patients with a very long and uncommon sentence of fourteen words were treated here twice."


def ids(part: str, n: int) -> list[str]:
    """Return names of questions that fall into a part."""
    found = (name for i in range(10_000) if part_of(f"bioasq:{(name := f'q{i}')}") == part)
    return [next(found) for _ in range(n)]


def question(name: str, number: int, text: str | None = None) -> dict[str, Any]:
    """Return a row: a drug's dose, in a title and two sentences of an article, and in another article."""
    drug, organ = DRUGS[number % len(DRUGS)], ORGANS[number % len(ORGANS)]
    dose = f"{number + 5} mg"
    first, other = (
        f"http://www.ncbi.nlm.nih.gov/pubmed/{1000 + 10 * number + i}" for i in range(2)
    )

    def snippet(document: str, section: str, at: int, said: str) -> dict[str, Any]:
        return {
            "document": document,
            "beginSection": section,
            "offsetInBeginSection": at,
            "offsetInEndSection": at + len(said),
            "text": said,
        }

    return {
        "id": name,
        "body": f"Which dose of {drug} is given in disease of the {organ}?",
        "type": "factoid",
        "documents": [first, other],
        "exact_answer": [[dose]],
        "ideal_answer": [f"The dose of {drug} is {dose} in disease of the {organ}."],
        "snippets": [
            snippet(first, "abstract", 90, text or f"The dose of {drug} that was given is {dose}."),
            snippet(first, "title", 0, f"A trial of {drug} in disease of the {organ}."),
            snippet(first, "abstract", 200, "Costs were not reported. Nurses kept the records."),
            snippet(other, "abstract", 0, f"In disease of the {organ}, {drug} is given as {dose}."),
        ],
    }


def write(folder: Path, tests: int = 6, devs: int = 6) -> Path:
    """Write all files of the suites over BioASQ."""
    names = [*ids("test", tests), *ids("dev", devs)]
    found = [question(name, number) for number, name in enumerate(names)]
    # one whose article is in the pool, and one whose words the pruner may have read
    train = ids("train", 2)
    found += [question(train[0], 90), question(train[1], 91, SEEN)]
    zipped(folder / QUESTIONS, found)
    zipped(
        folder / SNIPPETS,
        [
            {"pmid": str(5000 + i), "text": f"The {organ} was examined. Nothing was found."}
            for i, organ in enumerate(ORGANS)
        ],
    )
    texts: list[list[dict[str, Any]]] = [
        [{"pmid": "1900", "text": "Another abstract."}],
        [],
        [{"text": f"We read: {SEEN}"}],
    ]
    for (name, field), own in zip(READ, texts, strict=True):
        zipped(folder / name, own or [{field: "Nothing of it."}])
    return folder


def zipped(path: Path, found: Iterable[dict[str, Any]]) -> None:
    """Write rows."""
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in found)
