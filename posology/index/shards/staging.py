"""Shards between the writer and the workers: two small tables each, beside the index's own.

They are tables of the index's connection, not files. So an index on object storage needs no second address and no
second credentials, and a partly written shard is never read: a table exists once its first version is committed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from posology.index.connection import open_table, translated
from posology.index.schema import FORMAT, Meta, Row, arrow_schema, from_arrow, stored, to_arrow
from posology.text.roles.head import head_of
from posology.types import Pages, Passage, Retrieved

_PREFIX = "shard-"
_META = b"posology.shard"
#: names in one page of the list of tables
_PAGE = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Texts:
    """Input of a shard."""

    passages: tuple[Passage, ...]
    #: :func:`learned_id` of the annotator's learned state; ``None``: it has none
    learned: str | None


def key(passage: Passage) -> bytes:
    """Return the identity of what is computed of a passage: equal keys mean equal vectors, sentences and phrases.

    Marks of retraction and concern are left out: a notice may change them after the passage was encoded.
    """
    content = asdict(replace(passage, retracted=False, concern=False))
    text = json.dumps(content, ensure_ascii=False, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def learned_id(data: bytes | None) -> str | None:
    """Return the identity of an annotator's learned state; ``None``: it has none."""
    return None if data is None else hashlib.blake2b(data, digest_size=8).hexdigest()


def shard_name(keys: Iterable[bytes], meta: Meta, learned: str | None) -> str:
    """Return the name of a shard: equal names mean equal rows, from any worker at any time.

    Args:
        keys: see :func:`key`, of its passages, in order.
        meta: the index's.
        learned: see :func:`learned_id`.
    """
    found = hashlib.blake2b(digest_size=16)
    head = head_of(meta.embedder)
    recipe = [FORMAT, meta.splitter, meta.embedder, meta.dim, meta.annotator, meta.codec, learned]
    recipe.append(None if head is None else head.name)
    found.update(json.dumps(recipe).encode())
    for one in keys:
        found.update(one)
    return found.hexdigest()


class Staging:
    """Shards beside one index. Blocking.

    Args:
        connection: the index's.
        meta: the index's.
    """

    def __init__(self, connection: Any, meta: Meta) -> None:
        self._connection = connection
        self._schema = arrow_schema(meta)
        self._uri = str(connection.uri)

    def put_texts(self, name: str, texts: Texts) -> None:
        """Store a shard's texts for the workers.

        Raises:
            IndexFault: it cannot be written.
        """
        import pyarrow as pa

        lines = [json.dumps(asdict(passage), ensure_ascii=False) for passage in texts.passages]
        schema = pa.schema(
            [pa.field("passage", pa.large_string(), nullable=False)],
            metadata={_META: json.dumps({"learned": texts.learned}).encode()},
        )
        self._put(_texts(name), pa.table({"passage": lines}, schema=schema))

    def texts(self, name: str) -> Texts | None:
        """Return a shard's texts; ``None``: it was dropped."""
        table = self._read(_texts(name))
        if table is None:
            return None
        meta = json.loads(table.schema.metadata[_META])
        return Texts(
            passages=tuple(_passage(json.loads(line)) for line in table["passage"].to_pylist()),
            learned=meta["learned"],
        )

    def put_rows(self, name: str, rows: Sequence[Row]) -> None:
        """Store a shard's rows; several workers store the same ones.

        Raises:
            IndexFault: it cannot be written.
        """
        self._put(_rows(name), to_arrow(rows, self._schema))

    def rows(self, name: str) -> list[Retrieved] | None:
        """Return a shard's rows, in the order of the texts; ``None``: it is not encoded."""
        table = self._read(_rows(name))
        return None if table is None else from_arrow(table.select(stored(table.schema)))

    def encoded(self, name: str) -> bool:
        """Return whether a shard's rows are there."""
        return self._open(_rows(name)) is not None

    def drop(self, names: Iterable[str]) -> None:
        """Remove shards; unknown ones are ignored."""
        for name in names:
            for table in (_texts(name), _rows(name)):
                self._drop(table)

    def clear(self) -> None:
        """Remove all shards, also those of an abandoned ingest."""
        for table in self._tables():
            self._drop(table)

    def names(self) -> set[str]:
        """Return the shards with texts or rows."""
        return {name.removeprefix(_PREFIX).partition("-")[0] for name in self._tables()}

    def _tables(self) -> list[str]:
        found: list[str] = []
        token: str | None = None
        with translated(self._uri):
            while True:
                page = self._connection.list_tables(page_token=token, limit=_PAGE)
                found += [name for name in page.tables if name.startswith(_PREFIX)]
                token = page.page_token
                if not token:
                    return found

    def _put(self, table: str, data: Any) -> None:
        with translated(self._uri):
            try:
                self._connection.create_table(table, data=data, mode="overwrite")
            except (OSError, RuntimeError, ValueError):
                # another worker may have written the same at the same time
                if self._open(table) is None:
                    raise

    def _read(self, table: str) -> Any | None:
        opened = self._open(table)
        if opened is None:
            return None
        with translated(self._uri):
            return opened.to_arrow()

    def _open(self, table: str) -> Any | None:
        return open_table(self._connection, self._uri, table)

    def _drop(self, table: str) -> None:
        with translated(self._uri):
            self._connection.drop_table(table, ignore_missing=True)


def _texts(name: str) -> str:
    return f"{_PREFIX}{name}-texts"


def _rows(name: str) -> str:
    return f"{_PREFIX}{name}-rows"


def _passage(fields: dict[str, Any]) -> Passage:
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
    if pages := values.get("pages"):
        values["pages"] = Pages(**{name: tuple(places) for name, places in pages.items()})
    return Passage(**values)
