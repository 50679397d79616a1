"""Upgrade in place: what passages of an earlier version's index lack, from what is stored of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from posology.index.store import Index
from posology.text.roles.column import encode
from posology.text.roles.head import RoleHead, head_of
from posology.types import Sentence

if TYPE_CHECKING:
    import pyarrow as pa

#: passages of a commit of :func:`upgrade`
BATCH = 4_096
#: columns that :func:`upgrade` reads
_READ = ("id", "title", "document", "section", "starts", "ends", "sentence_vectors")


@dataclass(frozen=True, kw_only=True, slots=True)
class Upgraded:
    """Result of an upgrade."""

    #: passages whose sentences got roles
    written: int
    #: encoded passages that have none: no head knows the embedder
    lacking: int


def upgrade(
    index: Index, *, batch: int = BATCH, step: Callable[[int], None] = lambda _: None
) -> Upgraded:
    """Add roles to the passages that lack them, from their stored vectors. Blocking.

    Each batch is a commit, so an interrupted upgrade continues behind the last one. Readers answer meanwhile, in the
    version of before; the new version is published at the end.

    Args:
        index: of any embedder.
        batch: passages of a commit.
        step: called after each commit with the number of passages that it wrote.

    Raises:
        IndexLocked: another process is writing.
        IndexUnfinished: a sync was interrupted.
        IndexFault: the index cannot be read or written.
    """
    head = head_of(index.meta.embedder)
    written = 0
    if head is not None:
        # publishes, too, what a killed run has left
        with index.staged():
            before = index.newest()
            for rows in before.scan(_READ, where=before.lacking_roles, most=batch):
                found = dict(_roles(head, rows, index.meta.dim))
                index.set_roles(found)
                written += len(found)
                step(len(found))
            if written:
                index.finish()
    return Upgraded(written=written, lacking=index.newest().roleless)


def _roles(head: RoleHead, rows: pa.RecordBatch, dim: int) -> Iterable[tuple[str, bytes]]:
    for row in rows.to_pylist():
        spans = zip(row["starts"], row["ends"], strict=True)
        sentences = [Sentence(start=start, end=end) for start, end in spans]
        vectors = np.frombuffer(row["sentence_vectors"], np.int8).reshape(-1, dim)
        if len(vectors) == len(sentences):
            text = row["document"][len(row["title"]) + 1 :]
            roles = encode(head(text, sentences, vectors, row["section"]))
            assert roles is not None
            yield row["id"], roles
