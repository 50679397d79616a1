"""Tiny data sets in the formats of the shared ones, and vectors by words."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evals.papers.suite import Given

DRUGS = ("aspirin", "statins", "insulin", "morphine", "heparin", "digoxin")
OUTCOMES = ("stroke", "mortality", "bleeding")


def embed(texts: Sequence[str]) -> np.ndarray:
    """Unit vectors that are the nearer the more words two texts share, shape ``(len(texts), 64)``."""
    rows = np.full((len(texts), 64), 1e-3, np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in re.findall(r"\w+", text.lower()):
            row[int.from_bytes(hashlib.blake2b(word.encode(), digest_size=2).digest()) % 64] += 1
    unit: np.ndarray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def tiny(folder: Path, questions: int = 3) -> Given:
    """Write every data set that a suite reads."""
    _literature(folder)
    _paragraphs(folder)
    _conflicts(folder)
    return Given(data=folder, work=folder / "work", questions=questions, embed=embed)


def _literature(folder: Path) -> None:
    pairs = [(drug, outcome) for drug in DRUGS for outcome in OUTCOMES]
    abstracts = [
        {"id": f"pmid:{n}", "title": f"{drug} and {outcome}",
         "text": f"We studied {drug} in {n + 20} adults. It lowered {outcome}. Nobody was lost."}
        for n, (drug, outcome) in enumerate(pairs)
    ]  # fmt: skip
    _write(folder / "pool.jsonl.gz", abstracts)
    vectors = embed([f"{one['title']}. {one['text']}" for one in abstracts])
    np.save(folder / "pool.minilm.f16.npy", vectors.astype(np.float16))
    asked = [
        {"pmid": str(n), "question": f"Does {drug} lower {outcome}?", "answer": "yes"}
        for n, (drug, outcome) in enumerate(pairs[:6])
    ]
    _write(folder / "pubmedqa_train.jsonl.gz", asked)
    claims = [{"claim": "It lowers stroke.", "evidence": {"7": "SUPPORT"}}]
    _write(folder / "scifact_claims_train.jsonl.gz", claims)


def _paragraphs(folder: Path) -> None:
    rows = [
        {"title": drug, "context": f"The dose of {drug} was {n} mg. It was given for a year.", "qas": [
            {"id": f"q{n}", "question": f"What was the dose of {drug}?",
             "answers": [{"text": f"{n} mg", "answer_start": len(f"The dose of {drug} was ")}]}]}
        for n, drug in enumerate(DRUGS)
    ]  # fmt: skip
    _write(folder / "squad11_dev_part1.jsonl.gz", rows)


def _conflicts(folder: Path) -> None:
    ramdocs = [
        {"question": f"Where was {drug} found?", "gold_answers": ["Oslo"], "wrong_answers": ["Rome"], "documents": [
            {"text": f"{drug} was found in Oslo.", "type": "correct", "answer": "Oslo"},
            {"text": "It was a fine year.", "type": "noise", "answer": "unknown"},
            {"text": "Nobody knows of it.", "type": "noise", "answer": "unknown"},
            {"text": f"{drug} was found in Rome.", "type": "misinfo", "answer": "Rome"}]}
        for drug in DRUGS
    ]  # fmt: skip
    _write(folder / "ramdocs_part1.jsonl.gz", ramdocs)
    labels = ("Supports", "Refutes", "Supports", "Neutral")
    claims = [
        {"claim": f"{drug.capitalize()} cures a cold.",
         "evidence": [{"text": f"{label} it, says study {n}.", "label": label} for n, label in enumerate(labels)]}
        for drug in DRUGS
    ]  # fmt: skip
    _write(folder / "healthver_dev.jsonl.gz", claims)


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
