"""Questions with known gold passages: PubMedQA and SciFact, and the reader of their files."""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Default folder of the data sets.
DATA = Path("../shared/data")
#: Default folder of indices and vectors that are kept between runs.
WORK = Path(tempfile.gettempdir()) / "posology-evals"


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question and the passages that answer it."""

    text: str
    gold: frozenset[str]


def pubmedqa(data: Path) -> list[Question]:
    """Return the questions of PubMedQA's training part; gold is the abstract of the question's PMID."""
    return [
        Question(text=row["question"], gold=frozenset({f"pmid:{row['pmid']}"}))
        for row in rows(data / "pubmedqa_train.jsonl.gz")
    ]


def scifact(data: Path) -> list[Question]:
    """Return the claims of SciFact's training part that have evidence; gold is any abstract with evidence."""
    return [
        Question(text=row["claim"], gold=frozenset(f"scifact:{doc}" for doc in row["evidence"]))
        for row in rows(data / "scifact_claims_train.jsonl.gz")
        if row["evidence"]
    ]


def rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a gzipped file of JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def need(data: Path, *names: str) -> None:
    """Exit with a message that names the first of some files that a folder of data sets lacks."""
    if missing := [name for name in names if not (data / name).exists()]:
        sys.exit(f"{data} has no {missing[0]}. Pass --data with the folder of the data sets.")
