"""How a passage lies in the table: the columns, and the way in and out of Arrow.

Title and text are one column, ``document``, because BM25 searches them as one (measured: better
than two columns with any weights, see ``docs/decisions/0004-index-in-lancedb.md``) and the text
should not be stored twice. Sentence vectors are bytes, so that decoding is a view, not a copy.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from posology.types import Encoded, Passage, Retrieved, Sentence

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

#: of the columns and what they mean; an index of another format must be built anew
FORMAT = 1
#: of the sentence boundaries that are stored; raise it when ``posology.text.sentences`` changes
SPLITTER = 1

TABLE = "passages"
#: what a passage is made of, without what only searching needs
STORED = (
    "id", "title", "document", "pmid", "journal", "year", "publication_types", "mesh",
    "retracted", "source", "vector", "starts", "ends", "sentence_vectors",
)  # fmt: skip

_META = b"posology"


@dataclass(frozen=True, kw_only=True, slots=True)
class Meta:
    """What an index says of itself, kept with its table."""

    format: int
    #: name of the embedder that made the vectors
    embedder: str
    #: length of every vector
    dim: int
    splitter: int
    #: ISO 8601, UTC
    created: str


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Row:
    """A passage with all that is computed of it once."""

    passage: Passage
    sentences: tuple[Sentence, ...]
    encoded: Encoded
    #: of :func:`digest`
    digest: str


def digest(passage: Passage, vector: bytes = b"") -> str:
    """Identity of what a row is made from: equal digests, equal rows.

    Args:
        passage: every field counts.
        vector: the vector as it was handed in; empty when the embedder makes it.
    """
    content = json.dumps(asdict(passage), ensure_ascii=False, sort_keys=True)
    return hashlib.blake2b(content.encode() + b"\0" + vector, digest_size=16).hexdigest()


def arrow_schema(meta: Meta) -> pa.Schema:
    """The columns for vectors of ``meta.dim``, with ``meta`` as the schema's metadata."""
    import pyarrow as pa

    strings = pa.list_(pa.string())
    fields = [
        pa.field("id", pa.string(), nullable=False),
        pa.field("title", pa.string(), nullable=False),
        pa.field("document", pa.string(), nullable=False),
        pa.field("pmid", pa.string()),
        pa.field("journal", pa.string()),
        pa.field("year", pa.int32()),
        pa.field("publication_types", strings),
        pa.field("mesh", strings),
        pa.field("retracted", pa.bool_(), nullable=False),
        pa.field("source", pa.string()),
        pa.field("vector", pa.list_(pa.float32(), meta.dim), nullable=False),
        pa.field("starts", pa.list_(pa.int32())),
        pa.field("ends", pa.list_(pa.int32())),
        pa.field("sentence_vectors", pa.large_binary(), nullable=False),
        pa.field("digest", pa.string(), nullable=False),
    ]
    return pa.schema(fields, metadata={_META: json.dumps(asdict(meta)).encode()})


def read_meta(schema: pa.Schema) -> Meta | None:
    """What the table says of itself; ``None`` when it is not ours."""
    try:
        return Meta(**json.loads((schema.metadata or {})[_META]))
    except (KeyError, TypeError, ValueError):
        return None


def to_arrow(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    """Rows as a table."""
    import pyarrow as pa

    passages = [row.passage for row in rows]
    dim = schema.field("vector").type.list_size
    vectors = np.concatenate([row.encoded.vector for row in rows]).astype(np.float32, copy=False)
    columns: dict[str, Any] = {
        "id": [p.id for p in passages],
        "title": [p.title for p in passages],
        "document": [f"{p.title}\n{p.text}" for p in passages],
        "pmid": [p.pmid for p in passages],
        "journal": [p.journal for p in passages],
        "year": [p.year for p in passages],
        "publication_types": [p.publication_types for p in passages],
        "mesh": [p.mesh for p in passages],
        "retracted": [p.retracted for p in passages],
        "source": [p.source for p in passages],
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors), dim),
        "starts": [[s.start for s in row.sentences] for row in rows],
        "ends": [[s.end for s in row.sentences] for row in rows],
        "sentence_vectors": [quantise(row.encoded.sentence_vectors).tobytes() for row in rows],
        "digest": [row.digest for row in rows],
    }
    return pa.table(columns, schema=schema)


def quantise(vectors: NDArray[np.float32]) -> NDArray[np.int8]:
    """Unit vectors to int8: each component times 127, rounded."""
    return np.asarray(np.rint(np.clip(vectors, -1, 1) * 127), dtype=np.int8)


def from_arrow(table: pa.Table) -> list[Retrieved]:
    """The rows of a table that has the columns :data:`STORED`."""
    table = table.combine_chunks()
    if not table.num_rows:
        return []
    column = {name: table.column(name) for name in STORED}
    dim = column["vector"].type.list_size
    vectors = np.stack([v.values.to_numpy() for v in column["vector"]])
    plain = {
        name: column[name].to_pylist()
        for name in STORED
        if name not in ("vector", "sentence_vectors")
    }
    rows = []
    for i, blob in enumerate(column["sentence_vectors"]):
        starts, ends = plain["starts"][i], plain["ends"][i]
        passage = Passage(
            id=plain["id"][i],
            text=plain["document"][i][len(plain["title"][i]) + 1 :],
            title=plain["title"][i],
            pmid=plain["pmid"][i],
            journal=plain["journal"][i],
            year=plain["year"][i],
            publication_types=tuple(plain["publication_types"][i]),
            mesh=tuple(plain["mesh"][i]),
            retracted=plain["retracted"][i],
            source=plain["source"][i],
        )
        sentences = zip(starts, ends, strict=True)
        rows.append(
            Retrieved(
                passage=passage,
                sentences=tuple(Sentence(start=start, end=end) for start, end in sentences),
                vector=vectors[i],
                sentence_vectors=np.frombuffer(blob.as_buffer(), np.int8).reshape(-1, dim),
            )
        )
    return rows
