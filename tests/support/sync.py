"""What tests of a sync have in common: a made-up literature, and what an index shows of it."""

from __future__ import annotations

import random
from pathlib import Path

from posology.index.store import Index
from posology.index.sync.report import SyncReport
from posology.types import Retrieved
from tests.support.pubmed_files import Citation, write


class Crash(Exception):
    """Breaks a sync off."""


def citations(*pmids: int, text: str = "Aspirin helps.") -> list[Citation]:
    """Records that differ by their numbers alone."""
    return [Citation(pmid=pmid, text=f"{text} Number {pmid}.") for pmid in pmids]


def literature(folder: Path, *, seed: int = 7, files: int = 4) -> None:
    """Files that revise, delete and warn of one another's records."""
    chance = random.Random(seed)
    for number in range(1, files + 1):
        said = [
            Citation(
                pmid=chance.randrange(1, 40),
                text=f"Revision {number}.{i} of it.",
                retracts=(chance.randrange(1, 40),) if chance.random() < 0.2 else (),
                concerns=(chance.randrange(1, 40),) if chance.random() < 0.2 else (),
            )
            for i in range(15)
        ]
        write(folder, number, said, deleted=[chance.randrange(1, 40) for _ in range(3)])


def texts(index: Index) -> dict[str, str]:
    """What readers see, by id."""
    return {row.passage.id: row.passage.text for row in index.fetch(sorted(index.ids()))}


def flags(index: Index) -> dict[str, tuple[bool, bool]]:
    """Whether passages are shown as retracted, and as of concern, by id."""
    rows = index.fetch(sorted(index.ids()))
    return {r.passage.id: (r.passage.retracted, r.passage.concern) for r in rows}


def content(index: Index) -> list[tuple[object, ...]]:
    """All that readers see."""
    rows: tuple[Retrieved, ...] = index.fetch(sorted(index.ids()))
    return [(row.passage, row.sentences, row.vector.tobytes()) for row in rows]


def names(report: SyncReport) -> list[str]:
    """The files that were applied."""
    return [file.name for file in report.applied]
