"""What the commands around the index print as JSON."""

from __future__ import annotations

from posology.published.answers import Published, Ranked


class SearchOutput(Published):
    """What ``posology search --json`` prints."""

    query: str
    mode: str
    k: int
    hits: tuple[Ranked, ...]
    """in the order of the mode's ranking"""
    dense: tuple[str, ...]
    """ids, best first"""
    bm25_rerank: tuple[str, ...]
    """the passages of ``dense`` in BM25's order"""
    bm25: tuple[str, ...]
    fused: tuple[str, ...]
    index: str
    seconds: float


class BadItem(Published):
    """A record or a file that cannot be read."""

    path: str
    line: int | None
    reason: str


class IngestOutput(Published):
    """What ``posology ingest --json`` prints."""

    good: int
    """records that can be read"""
    written: int
    """of these, records that were embedded and written in this run"""
    unchanged: int
    """of these, records that were in the index already"""
    replaced: int
    """of these, records whose id came again at once"""
    bad: int
    bad_records: tuple[BadItem, ...]
    """the first of them"""
    bad_files: tuple[BadItem, ...]
    """files that cannot be read, or not to their end"""
    files: int
    seconds: float
    written_per_second: float


class IndexOutput(Published):
    """What ``posology index info --json`` prints."""

    uri: str
    version: str
    passages: int
    retracted: int
    embedder: str
    dim: int
    format: int
    splitter: int
    created: str
    vector_index: str | None
    """null while the index is so small that every vector is compared"""
