"""Makes the list of frequent words for bounds on a call's input.

``python -m training.frequent_words [--data DIR]``. Words of the packaged vocabulary's first
8,000 entries that occur in lower case, and no less often than with a capital inside a sentence, in half of the
abstracts and SQuAD paragraphs. ``python -m evals.money.bounds`` checks the bounds on the other half.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from posology.hub import published
from posology.text.bounds import FREQUENT
from training.gold import DATA, need, rows

FILES = (
    "pool.jsonl.gz",
    "squad11_dev_part1.jsonl.gz",
    "squad20_dev_part.jsonl.gz",
    "ramdocs_part1.jsonl.gz",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Texts:
    """Texts of the data sets, in two halves: one to train on, one to count."""

    abstracts: tuple[list[str], list[str]]
    #: paragraphs of an encyclopaedia
    general: tuple[list[str], list[str]]
    #: web passages, for training only
    web: list[str]

    @classmethod
    def read(cls, data: Path) -> Texts:
        """Read the texts from the folder of the data sets."""
        pool, squad, more, web = (rows(data / name) for name in FILES)
        abstracts = [row["text"] for row in pool]
        random.Random(1).shuffle(abstracts)
        general = [row["context"] for row in (*squad, *more)]
        return cls(
            abstracts=(abstracts[::2], abstracts[1::2]),
            general=(general[::2], general[1::2]),
            web=[document["text"] for row in web for document in row["documents"]],
        )


@cache
def vocabulary() -> tuple[str, ...]:
    """Return the entries of the packaged word-piece vocabulary, most frequent first."""
    return tuple((published() / "vocab.txt").read_text("utf-8").splitlines())


def write(texts: Texts) -> None:
    """Count the first half and write the list."""
    lower: Counter[str] = Counter()
    capital: Counter[str] = Counter()
    # the paragraphs count eight times, since there are so few
    for text in (*texts.abstracts[0], *texts.general[0] * 8):
        lower.update(set(re.findall(r"(?<= )[a-z]+(?![A-Za-z])", text)))
        capital.update(set(re.findall(r"(?<=[a-z,] )[A-Z][a-z]+(?![A-Za-z])", text)))
    chosen = sorted(
        word
        for rank, word in enumerate(vocabulary()[:8_000])
        if (word == "a" or re.fullmatch("[a-z]{2,}", word))
        and lower[word] >= max(20 if rank < 4_000 else 200, capital[word.capitalize()])
    )
    FREQUENT.write_text("\n".join(chosen) + "\n", encoding="utf-8")
    print(f"{len(chosen):,} words in {FREQUENT}")


def main(argv: list[str] | None = None) -> int:
    """Count and write the list."""
    parser = argparse.ArgumentParser(prog="training.frequent_words", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    data: Path = parser.parse_args(argv).data
    need(data, *FILES)
    write(Texts.read(data))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
