"""Vectors as the text of a completion, so that they are replayed and stored like other replies."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from posology.llm.providers.fields import count, section
from posology.types import Usage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class BadVectors(ValueError):
    """The vectors are not the requested ones; the message says why."""


def pack(vectors: NDArray[np.float32]) -> str:
    """Return vectors as text: ``ROWSxWIDTH:`` and base64 of little-endian float32."""
    rows, width = vectors.shape
    return f"{rows}x{width}:{base64.b64encode(vectors.astype('<f4').tobytes()).decode('ascii')}"


def unpack(text: str) -> NDArray[np.float32]:
    """Return the vectors of a text that :func:`pack` wrote.

    Raises:
        BadVectors: the text is of another form.
    """
    import numpy as np

    shape, _, data = text.partition(":")
    rows, _, width = shape.partition("x")
    try:
        raw = base64.b64decode(data, validate=True)
        flat = np.frombuffer(raw, "<f4").astype(np.float32)
        return flat.reshape(int(rows), int(width))
    except (ValueError, binascii.Error):
        raise BadVectors("the reply holds no vectors") from None


def read_vectors(
    body: Mapping[str, Any], *, texts: int | None, dimensions: int | None
) -> NDArray[np.float32]:
    """Return the vectors of a reply in OpenAI's format, in the order of the texts, shape ``(texts, dim)``.

    Args:
        body: of the reply.
        texts: number of texts sent; ``None``: as many as there are vectors, at least one.
        dimensions: requested length; ``None``: any, the same for all.

    Raises:
        BadVectors: a text lacks a vector of finite numbers that is not all 0.
    """
    import numpy as np

    data = body.get("data")
    if texts is None:
        texts = max(1, len(data)) if isinstance(data, list) else 1
    if not isinstance(data, list) or len(data) != texts:
        found = len(data) if isinstance(data, list) else "no list of"
        raise BadVectors(f"it has {found} vectors for {texts} texts")
    rows: dict[int, list[float]] = {}
    for place, item in enumerate(data):
        vector = item.get("embedding") if isinstance(item, dict) else None
        if not isinstance(vector, list) or not vector:
            raise BadVectors(f"its vector {place} is not a list of numbers")
        at = item.get("index", place)
        if not isinstance(at, int) or not 0 <= at < texts or at in rows:
            raise BadVectors(f"it has no vector, or two, for one of {texts} texts")
        if not all(isinstance(x, int | float) and math.isfinite(x) for x in vector):
            raise BadVectors(f"its vector {at} contains a value that is not a number")
        rows[at] = vector
    widths = {len(row) for row in rows.values()}
    wanted = dimensions or next(iter(widths), 0)
    if widths - {wanted}:
        raise BadVectors(
            f"its vectors have {', '.join(map(str, sorted(widths)))} numbers, not {wanted}"
        )
    vectors = np.array([rows[at] for at in range(texts)], np.float64).astype(np.float32)
    if not (np.isfinite(vectors).all() and vectors.any(axis=1).all()):
        raise BadVectors("one of its vectors is all 0, or too large")
    return vectors


def usage_of(body: Any) -> Usage | None:
    """Return the input tokens of a reply; embeddings have no output. ``None``: the reply lacks them, or says 0."""
    usage = section(body, "usage")
    read = count(usage.get("prompt_tokens")) or count(usage.get("total_tokens"))
    return Usage(input=read) if read else None
