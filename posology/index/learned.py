"""What an index's annotator has learned, kept beside the passages: later ingests go on with the same."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from posology.index.connection import translated
from posology.index.maintenance import compact

_TABLE = "learned"


@dataclass(frozen=True, kw_only=True, slots=True)
class Learned:
    """A model of the literature that an annotator made."""

    #: the annotator's name
    annotator: str
    #: records of the files that it was made from
    passages: int
    #: the annotator's own
    data: bytes


def read_learned(connection: Any) -> Learned | None:
    """What is kept; ``None``: nothing yet.

    Args:
        connection: the index's.

    Raises:
        IndexFault: it cannot be read.
    """
    with translated(str(connection.uri)):
        rows = _table(connection).search().limit(1).to_arrow().to_pylist()
    return Learned(**rows[0]) if rows else None


def keep_learned(connection: Any, learned: Learned) -> None:
    """Keep this in the place of what was kept.

    In a table, not in a file, so that object storage holds it too and a reader never sees half of it.

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
