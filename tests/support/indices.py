"""Small indices, made of rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.ingest.ingest import run_ingest
from orchestrator.ingest.writer import Target
from orchestrator.settings import Settings


def write_rows(path: Path, rows: Sequence[Mapping[str, Any] | str]) -> Path:
    """Write a file of JSON lines; a string is a line as it stands."""
    lines = [one if isinstance(one, str) else json.dumps(one) for one in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def index_of(folder: Path, encoder: Path, rows: Sequence[Mapping[str, Any] | str]) -> Path:
    """Make an index of rows by an encoder, and return its folder."""
    path = write_rows(folder / "rows.jsonl", rows)
    run_ingest([path], Settings(), Target(place=str(folder / "index"), embedder=str(encoder)))
    return folder / "index"


def groups(count: int) -> list[dict[str, str]]:
    """Rows that say the same of so many groups."""
    said = "Aspirin lowered the risk of stroke in group {n} of adults."
    return [{"id": f"pmid:{n + 1}", "text": said.format(n=n)} for n in range(count)]
