"""Roles of sentences in an index: one byte a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from posology.text.roles.head import ROLES, head_of
from posology.types import Passage, Sentence, SentenceRole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BYTE = {role: bytes([place]) for place, role in enumerate(ROLES)}


def encode(roles: Sequence[SentenceRole] | None) -> bytes | None:
    """Return one byte for each sentence; ``None``: unknown."""
    return None if roles is None else b"".join(_BYTE[role] for role in roles)


def decode(content: bytes | None) -> tuple[SentenceRole, ...] | None:
    """Return what :func:`encode` was given."""
    return None if content is None else tuple(ROLES[place] for place in content)


def roles_of(
    embedder: str, passage: Passage, sentences: Sequence[Sentence], vectors: NDArray[np.int8]
) -> tuple[SentenceRole, ...] | None:
    """Return the roles of a passage's sentences; ``None``: no head knows the embedder, or vectors are missing.

    Args:
        embedder: name of the embedder of the vectors.
        passage: the passage.
        sentences: its sentences.
        vectors: as the index stores them, shape ``(len(sentences), dim)``.
    """
    head = head_of(embedder)
    if head is None or len(vectors) != len(sentences):
        return None
    return head(passage.text, sentences, vectors, passage.section)
