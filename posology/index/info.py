"""What there is to say of an index."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexInfo:
    """What there is to say of an index."""

    #: where it lies
    uri: str
    #: name and version, e.g. ``index@17``
    version: str
    passages: int
    retracted: int
    #: name of the embedder that made its vectors
    embedder: str
    dim: int
    format: int
    splitter: int
    #: ISO 8601, UTC
    created: str
    #: kind of the vectors' index; ``None``: every vector is read at every question
    vector_index: str | None
    #: share of the 16 nearest that its search finds, as measured when it was built; ``None``: all of
    #: them, its search is exact, or it was not measured
    recall: float | None = None
    #: parts of the vectors' index that a question looks into; ``None``: all of them
    probes: int | None = None
    #: parts that it has; ``None``: it is exact
    partitions: int | None = None
    #: name of the annotator of its passages; ``None``: none annotates them
    annotator: str | None = None
    #: name of the codec of its token codes; ``None``: it has none
    codec: str | None = None
    #: when this version was published, ISO 8601, UTC; ``None``: not known
    published: str | None = None
    #: how many versions can be read
    versions: int = 1
    #: how many files syncs have applied
    files: int = 0
    #: name of the last of them in order; ``None``: there is none
    last_file: str | None = None
    #: names of the files that a sync has applied, or begun, and not published
    unfinished: tuple[str, ...] = ()
