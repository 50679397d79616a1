"""An embedder with the name and dimension of the packaged one, without its model."""

from __future__ import annotations

from posology.testing.models.embedder import HashEmbedder

#: name of the packaged embedder, for which the packaged head for roles was trained
NAME = "bert-384:6fceb34132ad:mean:256"


class NamedLikeMiniLM(HashEmbedder):
    """Hashed words under the packaged embedder's name, so that an index has what was trained for it."""

    def __init__(self) -> None:
        """Set its dimension."""
        super().__init__(dim=384)

    @property
    def name(self) -> str:
        """Name of the packaged embedder."""
        return NAME
