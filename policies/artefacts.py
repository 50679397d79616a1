"""Q-tables as text: one JSON object, whose digest says whether it is whole."""

from __future__ import annotations

import base64
import json
import math
from datetime import datetime
from typing import Any

import numpy as np

from policies.qtable import FORMAT, QTable, plain
from posology.errors import BadArtefact

#: what kind of artefact a file is
KIND = "qtable"


def write(table: QTable) -> str:
    """A table as text; values and visits can be read by people, the centroids are base64.

    Numbers come back as they were, to the last bit.
    """
    said = {
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
    rows = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in said.items())
    return "{\n" + ",\n".join(rows) + "\n}\n"


def read(text: str, *, path: str) -> QTable:
    """The table that was written.

    Args:
        text: of :func:`write`.
        path: where it was found, for messages.

    Raises:
        BadArtefact: it is none, of another format, or was changed since it was written.
    """
    try:
        said = json.loads(text)
    except ValueError as error:
        raise BadArtefact(f"it is no JSON: {error}", path=path) from None
    if not isinstance(said, dict) or said.get("posology") != KIND:
        raise BadArtefact("it is no Q-table", path=path)
    if said.get("format") != FORMAT:
        raise BadArtefact(
            f"it is of format {said.get('format')}, and {FORMAT} is read: train it again", path=path
        )
    try:
        table = _table(said)
    except KeyError as error:
        raise BadArtefact(f"it lacks {error}", path=path) from None
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise BadArtefact(f"it is damaged: {error}", path=path) from None
    if table.digest != said.get("digest"):
        raise BadArtefact("its digest is of another content: it was changed or cut", path=path)
    return table


def _table(said: dict[str, Any]) -> QTable:
    packed, visits = said["centroids"], np.array(said["visits"])
    if visits.dtype != np.int64:
        raise ValueError("visits are whole numbers")
    centroids = np.frombuffer(base64.b64decode(packed["float32"], validate=True), "<f4")
    return QTable(
        kind=str(said["kind"]),
        centroids=centroids.reshape(packed["shape"]),
        actions=tuple(float(share) for share in said["actions"]),
        q=np.array(
            [[np.nan if value is None else value for value in row] for row in said["q"]], np.float64
        ),
        visits=visits,
        alpha=float(said["alpha"]),
        embedder=str(said["embedder"]),
        compressor=str(said["compressor"]),
        model=str(said["model"]),
        k=int(said["k"]),
        prompts={str(name): str(digest) for name, digest in said["prompts"].items()},
        data=str(said["data"]),
        least_visits=int(said["least_visits"]),
        fallback=float(said["fallback"]),
        created=datetime.fromisoformat(said["created"]),
        parent=None if said["parent"] is None else str(said["parent"]),
    )
