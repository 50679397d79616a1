"""Finds, loads and identifies sentence-transformers models on this machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import torch

from posology.errors import EmbedderUnavailable

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Precision: TypeAlias = Literal["auto", "float32", "bfloat16"]

#: Longest input (tokens, special ones included) of a model that states none.
UNSTATED_LIMIT = 512


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Loaded:
    """A model in memory, ready for inference."""

    model: SentenceTransformer
    #: architecture, dimension, digest of the weights, pooling and input limit
    name: str
    dim: int
    #: longest input in tokens, special ones included
    limit: int
    #: whether a text's vector is the plain mean of its token vectors
    mean_pooled: bool


def locate(name: str) -> Path:
    """The folder of ``name``: a local folder, or a hub name whose files are in the local cache.

    Raises:
        EmbedderUnavailable: neither.
    """
    if Path(name).is_dir():
        return Path(name)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    # The hub keeps sentence-transformers' own models under the organisation of that name.
    hub_name = name if "/" in name else f"sentence-transformers/{name}"
    try:
        return Path(snapshot_download(hub_name, local_files_only=True))
    except (HFValidationError, LocalEntryNotFoundError) as error:
        raise EmbedderUnavailable(
            f"no embedder {name!r} on this machine: give 'minilm', the folder of a "
            f"sentence-transformers model, or fetch it once with `hf download {hub_name}`",
            embedder=name,
        ) from error


def load_folder(folder: Path, *, embedder: str, precision: Precision) -> Loaded:
    """Load the model in ``folder``.

    Raises:
        EmbedderUnavailable: the files are no sentence-transformers model of text, or damaged.
    """
    try:
        with _without_progress_bars():
            from sentence_transformers import SentenceTransformer

            # Eager attention: on CPUs it is faster than the fused kernel for texts this short.
            model = SentenceTransformer(
                str(folder),
                device="cpu",
                local_files_only=True,
                model_kwargs={"attn_implementation": "eager"},
            )
    # Damaged files surface as whatever the parser of that file raises.
    except Exception as error:
        raise _unusable(folder, embedder, str(error)) from error
    dim = model.get_embedding_dimension()
    if dim is None or not getattr(model.tokenizer, "is_fast", False):
        raise _unusable(folder, embedder, "it has no fast tokenizer, or no dimension")
    model.eval()
    model.to(_dtype(precision))
    limit = _input_limit(model)
    pooling = _pooling(model)
    kind = getattr(model.config, "model_type", "unknown")
    return Loaded(
        model=model,
        name=f"{kind}-{dim}:{_digest(folder)}:{pooling}:{limit}",
        dim=dim,
        limit=limit,
        mean_pooled=pooling == "mean",
    )


def has_native_bfloat16() -> bool:
    """Whether this CPU multiplies bfloat16 in hardware; without that it is slower than float32."""
    report = getattr(torch.cpu, "get_capabilities", None)  # not before torch 2.11
    capabilities: Mapping[str, Any] = report() if report else {}
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


def _dtype(precision: Precision) -> torch.dtype:
    if precision == "auto":
        return torch.bfloat16 if has_native_bfloat16() else torch.float32
    return torch.bfloat16 if precision == "bfloat16" else torch.float32


def _input_limit(model: SentenceTransformer) -> int:
    # A tokenizer without a limit of its own reports a huge number.
    positions = getattr(model.config, "max_position_embeddings", None)
    stated = [int(n) for n in (model.max_seq_length, positions) if n and n < 1_000_000]
    return min(stated, default=UNSTATED_LIMIT)


def _pooling(model: SentenceTransformer) -> str:
    """The pooling mode; any module that changes the pooled vector's direction makes it another."""
    names = [type(module).__name__ for module in model]
    modes = [str(getattr(m, "pooling_mode", "")) for m in model if hasattr(m, "pooling_mode")]
    changed = [n for n in names[1:] if n not in ("Pooling", "Normalize")]
    return "+".join([*modes, *changed]) or "none"


def _digest(folder: Path) -> str:
    """The first 12 hex digits of the SHA-256 of the weights."""
    files = sorted(folder.rglob("*.safetensors")) or sorted(folder.rglob("*.bin"))
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12]


def _unusable(folder: Path, embedder: str, reason: str) -> EmbedderUnavailable:
    return EmbedderUnavailable(
        f"{folder} does not load as a sentence-transformers model of text: {reason}",
        embedder=embedder,
    )


@contextmanager
def _without_progress_bars() -> Iterator[None]:
    """A progress bar over a load of half a second would end up in workers' logs."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
