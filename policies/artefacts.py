"""Q-tables as text: one JSON object with a digest of its content."""

from __future__ import annotations

import base64
import json
import math
from datetime import datetime
from typing import Any

import numpy as np

from policies.qtable import FORMAT, QTable, plain
from posology.errors import BadArtefact

#: kind of artefact
KIND = "qtable"


def write(table: QTable) -> str:
    """Write a table as text: values and visits are readable, the centroids are base64.

    Numbers are preserved to the last bit.
    """
    content = {
        "posology": KIND,
        "digest": table.digest,
        "created": table.created.isoformat(),
        **plain(table),
        "q": [[None if math.isnan(value) else value for value in row] for row in table.q.tolist()],
        "visits": table.visits.tolist(),
        "centroids": {
            "shape": table.centroids.shape,
            "float32": base64.b64encode(table.centroids.tobytes()).decode(),
        },
    }
    rows = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in content.items())
    return "{\n" + ",\n".join(rows) + "\n}\n"


def read(text: str, *, path: str) -> QTable:
    """Read a table.

    Args:
        text: text by :func:`write`.
        path: path of the file, for messages.

    Raises:
        BadArtefact: not a Q-table, of another format, or changed since it was written.
    """
    try:
        content = json.loads(text)
    except ValueError as error:
        raise BadArtefact(f"not JSON: {error}", path=path) from None
    if not isinstance(content, dict) or content.get("posology") != KIND:
        raise BadArtefact("not a Q-table", path=path)
    if content.get("format") != FORMAT:
        raise BadArtefact(
            f"it has format {content.get('format')}, but this version reads {FORMAT}: train it again",
            path=path,
        )
    try:
        table = _table(content)
    except KeyError as error:
        raise BadArtefact(f"missing field {error}", path=path) from None
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise BadArtefact(f"damaged: {error}", path=path) from None
    if table.digest != content.get("digest"):
        raise BadArtefact(
            "the digest does not match the content: the file was changed or truncated", path=path
        )
    return table


def _table(content: dict[str, Any]) -> QTable:
    packed, visits = content["centroids"], np.array(content["visits"])
    if visits.dtype != np.int64:
        raise ValueError("visits must be whole numbers")
    centroids = np.frombuffer(base64.b64decode(packed["float32"], validate=True), "<f4")
    return QTable(
        kind=str(content["kind"]),
        centroids=centroids.reshape(packed["shape"]),
        actions=tuple(float(share) for share in content["actions"]),
        q=np.array(
            [[np.nan if value is None else value for value in row] for row in content["q"]],
            np.float64,
        ),
        visits=visits,
        alpha=float(content["alpha"]),
        embedder=str(content["embedder"]),
        compressor=str(content["compressor"]),
        model=str(content["model"]),
        k=int(content["k"]),
        prompts={str(name): str(digest) for name, digest in content["prompts"].items()},
        data=str(content["data"]),
        least_visits=int(content["least_visits"]),
        fallback=float(content["fallback"]),
        created=datetime.fromisoformat(content["created"]),
        parent=None if content["parent"] is None else str(content["parent"]),
    )
