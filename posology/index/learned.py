"""Learned state of an index's annotator, stored beside the passages for later ingests."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from posology.index.connection import translated
from posology.index.maintenance import compact

_TABLE = "learned"


@dataclass(frozen=True, kw_only=True, slots=True)
class Learned:
    """Learned state of an annotator."""

    #: the annotator's name
    annotator: str
    #: records of the files that it was learned from
    passages: int
    #: format of the annotator's own
    data: bytes


def read_learned(connection: Any) -> Learned | None:
    """Return the stored state; ``None``: there is none yet.

    Args:
        connection: the index's connection.

    Raises:
        IndexFault: it cannot be read.
    """
    with translated(str(connection.uri)):
        rows = _table(connection).search().limit(1).to_arrow().to_pylist()
    return Learned(**rows[0]) if rows else None


def keep_learned(connection: Any, learned: Learned) -> None:
    """Store a state in place of the earlier one.

    It is a table, not a file, so that object storage holds it too, and a reader never sees a part of it.

    Raises:
        IndexFault: it cannot be written.
    """
    import pyarrow as pa

    with translated(str(connection.uri)):
        table = _table(connection)
        table.add(pa.Table.from_pylist([asdict(learned)], schema=table.schema), mode="overwrite")
        compact(table)


def _table(connection: Any) -> Any:
    import pyarrow as pa

    schema = pa.schema(
        [("annotator", pa.string()), ("passages", pa.int64()), ("data", pa.large_binary())]
    )
    return connection.create_table(_TABLE, schema=schema, exist_ok=True)
