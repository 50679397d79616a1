"""Names and properties of paid embedding models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from posology.errors import EmbedderUnavailable

PROVIDER = "openai"
#: default address of the provider
SERVER = "https://api.openai.com/v1"
#: length of the vectors of OpenAI's own models, and whether a shorter one can be requested (OpenAI's documentation,
#: "Vector embeddings")
KNOWN: Mapping[str, tuple[int, bool]] = MappingProxyType(
    {
        "text-embedding-3-small": (1_536, True),
        "text-embedding-3-large": (3_072, True),
        "text-embedding-ada-002": (1_536, False),
    }
)
#: tokens of one text that OpenAI's models take (``/v1/embeddings``, ``input``)
LIMIT = 8_191
_NAME = re.compile(
    r"(?P<name>.+?)(?:(?P<how>[@=])(?P<dim>[1-9]\d{0,5}))?(?:,(?P<limit>[1-9]\d{0,6}))?"
)
_HOW = (
    "use openai:MODEL, openai:MODEL@DIM to request vectors of DIM numbers, or openai:MODEL=DIM if the server's "
    "vectors have that length; append ,TOKENS if the model reads fewer than 8191 tokens of a text"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingModel:
    """A paid embedding model."""

    #: as the provider knows it
    name: str
    #: length of a vector
    dim: int
    #: whether the request asks for that length
    asked: bool
    #: maximum tokens of one text
    limit: int = LIMIT

    @property
    def model(self) -> str:
        """``provider:name``."""
        return f"{PROVIDER}:{self.name}"

    @property
    def identity(self) -> str:
        """Identity: equal for models with equal vectors."""
        limit = "" if self.limit == LIMIT else f",{self.limit}"
        return f"{self.model}:{self.dim}{limit}"


def parse(text: str) -> EmbeddingModel:
    """Parse the part after ``openai:`` of the name of an embedder.

    Raises:
        EmbedderUnavailable: the name is malformed, or the length of the model's vectors is unknown.
    """
    match = _NAME.fullmatch(text.strip())
    if match is None:
        raise EmbedderUnavailable(
            f"unknown embedder openai:{text}: {_HOW}", embedder=f"{PROVIDER}:{text}"
        )
    name, how, limit = match["name"], match["how"], int(match["limit"] or LIMIT)
    own, shortens = KNOWN.get(name, (None, True))
    if how is None:
        if own is None:
            raise EmbedderUnavailable(
                f"the length of the vectors of {name} is unknown: {_HOW}",
                embedder=f"{PROVIDER}:{text}",
            )
        return EmbeddingModel(name=name, dim=own, asked=False, limit=limit)
    dim = int(match["dim"])
    if own is not None and (dim > own or (dim < own and (how == "=" or not shortens))):
        raise EmbedderUnavailable(
            f"{name} has vectors of {own} numbers{' (or fewer, with @)' if shortens else ''}, not {dim}",
            embedder=f"{PROVIDER}:{text}",
        )
    return EmbeddingModel(name=name, dim=dim, asked=how == "@" and dim != own, limit=limit)
