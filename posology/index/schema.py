"""Schema of the table of passages, and conversion from and to Arrow.

Title and text are one column, ``document``, because BM25 searches them as one (measured: better
than two columns with any weights, see ``docs/concepts/retrieval.md``) and the text
should not be stored twice. Sentence vectors and token codes are bytes, so that decoding is a view, not a copy.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from posology.index import phrases, tokens
from posology.index.search import filters
from posology.index.search.longest import bounded
from posology.text.abbreviations import abbreviations
from posology.text.roles import column as roles
from posology.types import (
    Encoded,
    Flag,
    FlagKind,
    Pages,
    Passage,
    Phrases,
    Retrieved,
    Sentence,
    SentenceRole,
)
from posology.types.flags import OWN, STOPPED

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from posology.seams import TokenCodec

#: version of the columns and their meaning; an index of another format must be replaced by a new one
FORMAT = 4
#: version of the stored sentence boundaries; raise it when ``posology.text.sentences`` changes
SPLITTER = 1

TABLE = "passages"
#: columns of a passage, without those for searching only
STORED = (
    "id", "title", "document", "pmid", "journal", "year", "publication_types", "mesh",
    "retracted", "source", "concern", "doi", "pmcid", "published", "languages", "trials", "same_work",
    "parent", "section", "authors", "pages", "unread_pages", "flags", "vector", "starts", "ends", "sentence_vectors",
    "phrases", "tokens", "roles",
)  # fmt: skip

#: fields of a passage that are columns of the same name; lists are tuples there
_AS_IS = (
    "pmid", "journal", "year", "publication_types", "mesh", "retracted", "source", "concern", "doi", "pmcid",
    "published", "languages", "trials", "same_work", "parent", "section", "authors", "unread_pages",
)  # fmt: skip
#: columns that indices of earlier versions lack; there, these fields have their defaults
ADDED = ("authors", "pages", "unread_pages", "flags", "roles")

#: fields of a flag
_FLAG = ("kind", "source", "by", "date")

#: what a number would not be the same without: its point, its sign, and what it is compared by; not the comma of thousands
_SIGNS = re.compile(
    r"(?<=\d)[.·](?=\d)|(?<=\d),(?=\d{1,2}(?!\d))|[<>≤≥±](?=\s?=?\s?[.·]?\d)|(?<![^\W_])[-−–](?=[.·]?\d)"
)
#: characters of no text in place of them
_MARKS = {
    "<": "\ue000",
    ">": "\ue001",
    "≤": "\ue002",
    "≥": "\ue003",
    "±": "\ue004",
    **dict.fromkeys("-−–", "\ue005"),
    **dict.fromkeys(".·,", "\ue006"),
}
_MARKED = frozenset(_MARKS.values())
#: minimum number of letters and digits of two passages that are considered copies if all of them agree
SHORTEST_COPY = 200

_META = b"posology"
#: Lance's own name for it
_PRIMARY_KEY = {b"lance-schema:unenforced-primary-key": b"true"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Meta:
    """Metadata of an index, stored with its table."""

    format: int
    #: name of the embedder that made the vectors
    embedder: str
    #: length of every vector
    dim: int
    splitter: int
    #: ISO 8601, UTC
    created: str
    #: name of the annotator that made the phrases; ``None``: there are none
    annotator: str | None = None
    #: name of the codec that compressed the tokens' vectors; ``None``: there are none
    codec: str | None = None
    #: bytes of a token's code; ``None``: there are none
    codec_width: int | None = None

    @classmethod
    def new(
        cls, embedder: str, dim: int, *, annotator: str | None, codec: TokenCodec | None
    ) -> Meta:
        """Return the metadata of an index that is made now; a codec of another embedder counts as none."""
        fit = tokens.fitting(codec, embedder)
        return cls(
            format=FORMAT,
            embedder=embedder,
            dim=dim,
            splitter=SPLITTER,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            annotator=annotator,
            codec=None if fit is None else fit.name,
            codec_width=None if fit is None else fit.width,
        )

    @property
    def is_current(self) -> bool:
        """Whether this version reads the index."""
        return (self.format, self.splitter) == (FORMAT, SPLITTER)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Row:
    """A passage with everything that is computed of it at ingest."""

    passage: Passage
    sentences: tuple[Sentence, ...]
    encoded: Encoded
    #: see :func:`digest`
    digest: str
    #: ``None`` where the index has no annotator
    phrases: Phrases | None = None
    #: of the sentences; ``None``: unknown
    roles: tuple[SentenceRole, ...] | None = None


def digest(passage: Passage, vector: bytes = b"") -> str:
    """Return the identity of a row's input: equal digests mean equal rows.

    Args:
        passage: every field of the record counts, those of :data:`ADDED` if they are set: others keep the digests that
            earlier versions stored.
        vector: the given vector; empty when the embedder computes it.
    """
    fields = asdict(passage)
    del fields["flags"]
    known = {name: value for name, value in fields.items() if value or name not in ADDED}
    content = json.dumps(known, ensure_ascii=False, sort_keys=True)
    return hashlib.blake2b(content.encode() + b"\0" + vector, digest_size=16).hexdigest()


#: beginning of the digest of a row whose sentences and tokens are not encoded yet
_PROVISIONAL = "quick:"
#: predicate of such rows
INCOMPLETE = f"digest LIKE '{_PROVISIONAL}%'"


def provisional(digest: str) -> str:
    """Return the digest of a row whose sentences and tokens are not encoded yet; it equals no :func:`digest`."""
    return _PROVISIONAL + digest


def content(passage: Passage) -> str:
    """Return a digest that copies of one text share: of its letters and digits, in one case, and the signs of its numbers.

    Texts too short to rule out chance agreement have no copies.
    """
    told = f"{passage.title}\n{passage.text}".casefold()
    text = _SIGNS.sub(lambda found: _MARKS[found[0]], told)
    letters = "".join(one for one in text if one.isalnum() or one in _MARKED)
    own = letters if len(letters) >= SHORTEST_COPY else f"{letters}\0{passage.id}"
    return hashlib.blake2b(own.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def arrow_schema(meta: Meta) -> pa.Schema:
    """Return the columns for vectors of ``meta.dim``, with ``meta`` as the schema's metadata."""
    import pyarrow as pa

    strings = pa.list_(pa.string())
    fields = [
        # concurrent commits that add the same id then conflict, even if the write lock was lost
        pa.field("id", pa.string(), nullable=False, metadata=_PRIMARY_KEY),
        pa.field("title", pa.string(), nullable=False),
        pa.field("document", pa.string(), nullable=False),
        pa.field("pmid", pa.string()),
        pa.field("journal", pa.string()),
        pa.field("year", pa.int32()),
        pa.field("publication_types", strings),
        pa.field("mesh", strings),
        pa.field("retracted", pa.bool_(), nullable=False),
        pa.field("source", pa.string()),
        pa.field("concern", pa.bool_(), nullable=False),
        pa.field("doi", pa.string()),
        pa.field("pmcid", pa.string()),
        pa.field("published", pa.string()),
        pa.field("languages", strings),
        pa.field("trials", strings),
        pa.field("same_work", strings),
        pa.field("parent", pa.string()),
        pa.field("section", pa.string()),
        pa.field("authors", strings),
        # see `Pages.flat`
        pa.field("pages", pa.list_(pa.int32())),
        pa.field("unread_pages", pa.int32()),
        pa.field("flags", pa.list_(pa.struct([(name, pa.string()) for name in _FLAG]))),
        pa.field("vector", pa.list_(pa.float32(), meta.dim), nullable=False),
        pa.field("starts", pa.list_(pa.int32())),
        pa.field("ends", pa.list_(pa.int32())),
        pa.field("sentence_vectors", pa.large_binary(), nullable=False),
        pa.field("phrases", pa.binary()),
        pa.field("tokens", pa.large_binary()),
        # a byte a sentence
        pa.field("roles", pa.binary()),
        pa.field(filters.COLUMN, strings),
        pa.field("digest", pa.string(), nullable=False),
        # the record's own marks; the columns without "own" include those of notices
        pa.field("own_retracted", pa.bool_(), nullable=False),
        pa.field("own_concern", pa.bool_(), nullable=False),
        pa.field("content", pa.string(), nullable=False),
        pa.field("shorts", strings),
        pa.field("longs", strings),
    ]
    return pa.schema(fields, metadata={_META: json.dumps(asdict(meta)).encode()})


def stored(schema: pa.Schema) -> tuple[str, ...]:
    """Return the columns of :data:`STORED` that a table has."""
    return tuple(name for name in STORED if name in schema.names or name not in ADDED)


def missing(schema: pa.Schema, meta: Meta) -> list[pa.Field]:
    """Return the columns of :data:`ADDED` that a table lacks."""
    return [arrow_schema(meta).field(name) for name in ADDED if name not in schema.names]


def read_meta(schema: pa.Schema) -> Meta | None:
    """Return a table's metadata; ``None``: it is not a table of Posology."""
    try:
        return Meta(**json.loads((schema.metadata or {})[_META]))
    except (KeyError, TypeError, ValueError):
        return None


def to_arrow(
    rows: Sequence[Row],
    schema: pa.Schema,
    flagged: Callable[[Passage], tuple[Flag, ...]] | None = None,
) -> pa.Table:
    """Return rows as a table.

    Args:
        rows: passages with their own marks.
        schema: see :func:`arrow_schema`.
        flagged: returns the flags of a passage; ``None``: :func:`own_flags`.

    Raises:
        ValueError: phrases or token codes of a passage cannot be stored.
    """
    import pyarrow as pa

    coded = [row.encoded.tokens for row in rows]
    defined = [abbreviations(row.passage.text, row.sentences) for row in rows]
    passages = [row.passage for row in rows]
    dim = schema.field("vector").type.list_size
    vectors = np.concatenate([row.encoded.vector for row in rows]).astype(np.float32, copy=False)
    flags = [(flagged or own_flags)(passage) for passage in passages]
    columns: dict[str, Any] = {
        "id": [p.id for p in passages],
        "title": [p.title for p in passages],
        "document": [f"{p.title}\n{p.text}" for p in passages],
        **{name: [getattr(p, name) for p in passages] for name in _AS_IS},
        **marks(flags),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors), dim),
        "pages": [None if p.pages is None else p.pages.flat for p in passages],
        "starts": [[s.start for s in row.sentences] for row in rows],
        "ends": [[s.end for s in row.sentences] for row in rows],
        "sentence_vectors": [quantise(row.encoded.sentence_vectors).tobytes() for row in rows],
        "phrases": [None if r.phrases is None else phrases.encode(r.phrases) for r in rows],
        "tokens": [None if codes is None else tokens.encode(codes) for codes in coded],
        "roles": [roles.encode(row.roles) for row in rows],
        filters.COLUMN: [filters.labels(p) for p in passages],
        "digest": [row.digest for row in rows],
        "own_retracted": [p.retracted for p in passages],
        "own_concern": [p.concern for p in passages],
        "content": [content(passage) for passage in passages],
        "shorts": [[pair.short for pair in pairs] for pairs in defined],
        "longs": [[pair.long.casefold() for pair in pairs] for pairs in defined],
    }
    return pa.table(columns, schema=schema)


def own_flags(passage: Passage) -> tuple[Flag, ...]:
    """Return the flags of a passage's own marks of retraction and concern, and of its stopped trial."""
    marks = (
        (FlagKind.RETRACTION, passage.retracted),
        (FlagKind.CONCERN, passage.concern),
        *((STOPPED[name], True) for name in passage.publication_types if name in STOPPED),
    )
    return tuple(
        Flag(kind=kind, source=OWN, by=passage.id, date=None) for kind, holds in marks if holds
    )


def marks(flags: Sequence[tuple[Flag, ...]]) -> dict[str, list[Any]]:
    """Return the columns that are derived from the flags of passages."""
    kinds = [{flag.kind for flag in some} for some in flags]
    return {
        "retracted": [FlagKind.RETRACTION in found for found in kinds],
        "concern": [FlagKind.CONCERN in found for found in kinds],
        "flags": [[asdict(flag) for flag in some] or None for some in flags],
    }


def read_flags(column: Sequence[Mapping[str, Any]] | None) -> tuple[Flag, ...]:
    """Return the flags in a row's column ``flags``."""
    return tuple(Flag(**{**one, "kind": FlagKind(one["kind"])}) for one in column or ())


def quantise(vectors: NDArray[np.float32]) -> NDArray[np.int8]:
    """Quantise unit vectors to int8: each component times 127, rounded."""
    return np.asarray(np.rint(np.clip(vectors, -1, 1) * 127), dtype=np.int8)


def from_arrow(table: pa.Table) -> list[Retrieved]:
    """Return the rows of a table that has the columns :data:`STORED`, those of :data:`ADDED` perhaps not."""
    table = table.combine_chunks()
    if not table.num_rows:
        return []
    column = {name: table.column(name) for name in stored(table.schema)}
    dim = column["vector"].type.list_size
    vectors = np.stack([v.values.to_numpy() for v in column["vector"]])
    plain = {
        name: column[name].to_pylist()
        for name in column
        if name not in ("vector", "sentence_vectors", "phrases", "tokens")
    }
    given = {name: plain[name] for name in _AS_IS if name in plain}
    nothing = [None] * table.num_rows
    pages, flags = plain.get("pages", nothing), plain.get("flags", nothing)
    annotated = phrases.decode(column["phrases"])
    coded = tokens.decode(column["tokens"])
    found_roles = plain.get("roles", nothing)
    rows = []
    for i, blob in enumerate(column["sentence_vectors"]):
        starts, ends = plain["starts"][i], plain["ends"][i]
        passage = Passage(
            id=plain["id"][i],
            text=plain["document"][i][len(plain["title"][i]) + 1 :],
            title=plain["title"][i],
            pages=Pages.read(pages[i]),
            flags=read_flags(flags[i]),
            **{
                name: _value(values[i])
                for name, values in given.items()
                if name not in ADDED or values[i] is not None
            },
        )
        sentences = zip(starts, ends, strict=True)
        rows.append(
            bounded(
                Retrieved(
                    passage=passage,
                    sentences=tuple(Sentence(start=start, end=end) for start, end in sentences),
                    vector=vectors[i],
                    sentence_vectors=np.frombuffer(blob.as_buffer(), np.int8).reshape(-1, dim),
                    phrases=annotated[i],
                    tokens=coded[i],
                    roles=roles.decode(found_roles[i]),
                )
            )
        )
    return rows


def _value(found: Any) -> Any:
    return tuple(found) if isinstance(found, list) else found
