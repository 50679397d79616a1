"""Measures the boundary F1 of the sentence splitter on GENIA abstracts.

Usage: ``python -m evals.corpus.sentences [--data PATH]``.

An abstract is rebuilt by joining its gold sentences by one space; a boundary is the end offset
of every sentence but the last; F1 is micro-averaged. The abstracts are halved by a hash of their
PubMed id: rules were tuned on ``dev`` only.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from posology.text.sentences import split
from training.gold import rows

FILE = "genia_sentences.jsonl.gz"
HALVES = ("dev", "held")

#: text to the end offsets of its sentences, without the last
Boundaries = Callable[[str], set[int]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Abstract:
    """An abstract with its gold boundaries."""

    text: str
    boundaries: frozenset[int]
    #: one of :data:`HALVES`
    half: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """Counts of boundaries over many abstracts."""

    hits: int
    proposed: int
    gold: int

    @property
    def precision(self) -> float:
        """The share of proposed boundaries that are gold."""
        return self.hits / self.proposed if self.proposed else 0.0

    @property
    def recall(self) -> float:
        """The share of gold boundaries that were proposed."""
        return self.hits / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 2 * self.hits / (self.proposed + self.gold) if self.proposed + self.gold else 0.0


def half_of(pmid: str) -> str:
    """The half that an abstract belongs to, from a hash of its PubMed id."""
    return HALVES[hashlib.sha256(pmid.encode()).digest()[0] % 2]


def read(path: Path) -> Iterator[Abstract]:
    """Read gold abstracts from gzipped JSON lines."""
    for row in rows(path):
        ends = [length - 1 for length in accumulate(1 + len(one) for one in row["sentences"])]
        yield Abstract(
            text=" ".join(row["sentences"]),
            boundaries=frozenset(ends[:-1]),
            half=half_of(row["pmid"]),
        )


def ours(text: str) -> set[int]:
    """The splitter that Posology ships."""
    return {sentence.end for sentence in split(text)[:-1]}


def score(abstracts: Iterable[Abstract], boundaries: Boundaries) -> Score:
    """Micro-averaged counts of ``boundaries`` over ``abstracts``."""
    hits = proposed = gold = 0
    for abstract in abstracts:
        found = boundaries(abstract.text)
        hits += len(found & abstract.boundaries)
        proposed += len(found)
        gold += len(abstract.boundaries)
    return Score(hits=hits, proposed=proposed, gold=gold)


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 2 if the data are absent."""
    parser = argparse.ArgumentParser(description="Boundary F1 of the sentence splitter on GENIA.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    path = parser.parse_args(arguments).data / FILE
    if not path.is_file():
        print(f"{path} is missing. Pass --data with the folder of the data sets.", file=sys.stderr)
        return 2
    abstracts = list(read(path))
    print(f"{'half':<6}{'P':>8}{'R':>8}{'F1':>8}{'gold':>8}")
    for half in HALVES:
        result = score((a for a in abstracts if a.half == half), ours)
        print(
            f"{half:<6}{result.precision:>8.4f}{result.recall:>8.4f}{result.f1:>8.4f}{result.gold:>8}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
