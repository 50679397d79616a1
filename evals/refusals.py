"""Measures precision and recall of refusal detection on written examples.

Usage: ``python -m evals.refusals [--misses]``.

``evals/data/refusals.jsonl`` holds labelled replies. The detector was written against the split ``dev``; ``test`` was
written afterwards, and the detector has not changed since. ``dev`` holds four earlier held-out splits; on first sight
they gave precision and recall 0.97/0.79, 0.97/0.74, 0.86/0.74 and 0.92/0.83.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from posology.text.refusals import is_refusal

FILE = Path(__file__).parent / "data" / "refusals.jsonl"
SPLITS = ("dev", "test")


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """A reply and whether it is a refusal."""

    text: str
    refusal: bool
    #: one of :data:`SPLITS`
    split: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """Precision and recall of the class *refusal*, with what was missed."""

    precision: float
    recall: float
    examples: int
    misses: tuple[Example, ...]


def read(path: Path = FILE) -> list[Example]:
    """Read the examples."""
    return [Example(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def score(examples: list[Example]) -> Score:
    """Run the detector over ``examples``."""
    verdicts = [(example, is_refusal(example.text)) for example in examples]
    hits = sum(said and example.refusal for example, said in verdicts)
    said = sum(said for _, said in verdicts)
    gold = sum(example.refusal for example in examples)
    return Score(
        precision=hits / said if said else 0.0,
        recall=hits / gold if gold else 0.0,
        examples=len(examples),
        misses=tuple(example for example, verdict in verdicts if verdict != example.refusal),
    )


def main(arguments: list[str] | None = None) -> int:
    """Print precision and recall per split."""
    parser = argparse.ArgumentParser(description="Precision and recall of refusal detection.")
    parser.add_argument("--misses", action="store_true", help="print the replies judged wrongly")
    show = parser.parse_args(arguments).misses
    examples = read()
    print(f"{'split':<6}{'P':>8}{'R':>8}{'n':>6}")
    for split in SPLITS:
        result = score([example for example in examples if example.split == split])
        print(f"{split:<6}{result.precision:>8.3f}{result.recall:>8.3f}{result.examples:>6}")
        for example in result.misses if show else ():
            print(f"  {'missed' if example.refusal else 'false alarm'}: {example.text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
