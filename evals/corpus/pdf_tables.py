"""Reads PDFs with drawn tables: cells that are right, cells that are false, and tables that are not taken.

Usage: ``python -m evals.corpus.pdf_tables [--first SEED] [--count N] [--show]``. Without arguments, a table per kind; else ``N``
tables whose looks and contents are drawn by ``SEED`` and those that follow. A cell is right if its table, row, headings and
value are exactly those that were drawn; any other cell of a row is false. ``--show`` prints the false ones.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from posology.corpus import pdf
from posology.corpus.items import Record
from posology.text.quoting.rows import read, rows_of
from tests.support.pdfs.tables import LOOKS, Cell, Drawn, any_look, draw


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """Cells of one file."""

    #: cells that were drawn
    wanted: int
    right: int
    #: cells of rows that were not drawn
    false: frozenset[Cell]
    #: tables, and those of which no row is read
    tables: int
    refused: int


def cells(path: Path) -> set[Cell]:
    """Return the cells of the rows that are read of a file."""
    found: set[Cell] = set()
    for item in pdf.read(path):
        if not isinstance(item, Record):
            continue
        text = item.passage.text
        for start, end in rows_of(text):
            if (row := read(text[start:end])) is not None:
                found.update((row.label, row.name, one.heading, one.text) for one in row.values)
    return found


def score(drawn: Drawn, path: Path) -> Score:
    """Return what is read of a file, which is written to ``path``."""
    path.write_bytes(drawn.content)
    found = cells(path)
    labels = {label for label, *_ in drawn.cells}
    return Score(
        wanted=len(drawn.cells),
        right=len(found & drawn.cells),
        false=frozenset(found - drawn.cells),
        tables=len(labels),
        refused=len(labels - {label for label, *_ in found}),
    )


def _row(name: str, scores: Iterable[Score]) -> str:
    every = list(scores)
    wanted, right = sum(one.wanted for one in every), sum(one.right for one in every)
    false = sum(len(one.false) for one in every)
    share = f"{100 * false / (right + false):.2f}" if right + false else "–"
    refused = f"{sum(one.refused for one in every)} of {sum(one.tables for one in every)}"
    return f"| {name} | {wanted} | {right} | {false} | {share} | {refused} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    print(
        "| kind | cells | right | false | false, % | tables refused |\n| ---" + " | ---" * 5 + " |"
    )
    every: list[Score] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a_file.pdf"
        if given.first is None:
            looks = [(name, look, seed) for seed, (name, look) in enumerate(LOOKS.items())]
        else:
            seeds = range(given.first, given.first + given.count)
            looks = [(f"seed {seed}", any_look(seed), seed) for seed in seeds]
        for name, look, seed in looks:
            every.append(one := score(draw(look, seed), path))
            if given.first is None or (given.show and one.false):
                print(_row(name, [one]))
            if given.show:
                for cell in sorted(one.false):
                    print("   ", cell, look)
        print(_row("all", every))


if __name__ == "__main__":
    main()
