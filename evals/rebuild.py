"""What a rebuild of an index costs beside encoding: reading, comparing, and the disk that the survey takes.

Usage: ``python -m evals.rebuild [--records N]``.

A file like NLM's is written from drawn words and surveyed; an index is rebuilt from it with an embedder that computes
nothing, is rebuilt again although nothing has changed, and is compared row by row once more. Rates are by the time that
the processor was busy.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evals.pubmed_files import write
from posology.index.store import Index
from posology.index.sync.prospect import SURVEY
from posology.index.sync.rebuild import rebuild
from posology.index.sync.survey import Survey
from posology.testing.models.embedder import HashEmbedder


@contextmanager
def timed(name: str, records: int) -> Iterator[None]:
    """Print how many records a second the block does, by the processor's time."""
    started = time.process_time()
    yield
    seconds = time.process_time() - started
    print(f"{name}: {seconds:.2f} s, {records / seconds:,.0f} a second", flush=True)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=30_000)
    records = parser.parse_args().records
    with tempfile.TemporaryDirectory() as temporary:
        where = Path(temporary)
        folder, kept = where / "files", where / SURVEY
        folder.mkdir()
        path = folder / "pubmed26n0001.xml.gz"
        write(path, records, deleted=0)
        with timed("survey", records), Survey.open(kept) as survey:
            survey.read([path], lambda *_: None)
            passages = survey.passages
        print(f"survey: {kept.stat().st_size / passages:.0f} bytes a passage of {passages:,}")
        embedder = HashEmbedder(dim=8)
        index = Index.create(where / "index", embedder.name, embedder.dim)
        rebuild(folder, index, embedder)
        with timed("rebuild, nothing changed", records):
            assert rebuild(folder, index, embedder).nothing
        with timed("every row looked at once more", passages), Survey.open(kept) as survey:
            index.settle(survey.holds)


if __name__ == "__main__":
    main()
