"""Names of models whose vectors are bought, and what has to be known of them before anything is sent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from posology.errors import EmbedderUnavailable

PROVIDER = "openai"
#: its own address, which the SDK takes where no other is given
SERVER = "https://api.openai.com/v1"
#: numbers a vector of OpenAI's own models, and whether they can be asked for fewer (OpenAI's documentation,
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
    "write openai:MODEL, openai:MODEL@DIM to ask for vectors of DIM numbers, or openai:MODEL=DIM where the server's "
    "are that long; and ,TOKENS behind it where it takes fewer than 8191 of a text"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddingModel:
    """A model whose vectors are bought."""

    #: as the provider knows it
    name: str
    #: numbers a vector
    dim: int
    #: whether the request asks for that many
    asked: bool
    #: tokens of one text, at most
    limit: int = LIMIT

    @property
    def model(self) -> str:
        """``provider:name``."""
        return f"{PROVIDER}:{self.name}"

    @property
    def identity(self) -> str:
        """Tells apart what gives other vectors."""
        limit = "" if self.limit == LIMIT else f",{self.limit}"
        return f"{self.model}:{self.dim}{limit}"


def parse(text: str) -> EmbeddingModel:
    """Read what stands behind ``openai:`` in the name of an embedder.

    Raises:
        EmbedderUnavailable: it names no model, or one whose vectors are nobody knows how long.
    """
    found = _NAME.fullmatch(text.strip())
    if found is None:
        raise EmbedderUnavailable(
            f"no embedder openai:{text}: {_HOW}", embedder=f"{PROVIDER}:{text}"
        )
    name, how, limit = found["name"], found["how"], int(found["limit"] or LIMIT)
    own, shortens = KNOWN.get(name, (None, True))
    if how is None:
        if own is None:
            raise EmbedderUnavailable(
                f"nobody knows how long the vectors of {name} are: {_HOW}",
                embedder=f"{PROVIDER}:{text}",
            )
        return EmbeddingModel(name=name, dim=own, asked=False, limit=limit)
    dim = int(found["dim"])
    if own is not None and (dim > own or (dim < own and (how == "=" or not shortens))):
        raise EmbedderUnavailable(
            f"{name} gives vectors of {own} numbers{', or fewer: write @' if shortens else ''}, not {dim}",
            embedder=f"{PROVIDER}:{text}",
        )
    return EmbeddingModel(name=name, dim=dim, asked=how == "@" and dim != own, limit=limit)
