"""Comparison of an index with its files."""

from __future__ import annotations

from dataclasses import dataclass

from posology.described import published


@published("RebuildOutput")
@dataclass(frozen=True, kw_only=True, slots=True)
class Rebuilt:
    """Comparison of an index with the files that it is rebuilt from."""

    passages: int
    """Passages in all files together."""
    new: int
    """Of these, passages that the index lacks."""
    changed: int
    """Of these, passages that the index has with other content."""
    unchanged: int
    """Of these, passages that the index has with the same content; they are not encoded again."""
    removed: int
    """Published passages that no file holds; the rebuild removes them, also those of `posology ingest`."""
    published: int
    """Passages of the published version before the rebuild."""
    forgotten: tuple[str, ...]
    """Names of applied files that are not in the folder."""
    ingested: tuple[str, ...]
    """Paths of files that `posology ingest` read and that are not in the folder."""
