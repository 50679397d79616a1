"""Finding, loading and identification of sentence-transformers models on this machine."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posology.devices import AUTO, CPU, find_device
from posology.errors import EmbedderUnavailable
from posology.hub import DEFAULT, digest, find, loading, published, require
from posology.index.embedders.card import Card, Loaded
from posology.index.embedders.options import Options, Precision

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

    from posology.index.embedders.onnx.export import Arithmetic

logger = logging.getLogger(__name__)

#: Longest input (tokens, special ones included) of a model that states none.
UNSTATED_LIMIT = 512


def locate(name: str) -> Path:
    """Return the folder of ``name``: a local folder, or a hub name whose files are in the local cache.

    Raises:
        EmbedderUnavailable: it is neither.
        ModelUnavailable: the packages that run it are not installed.
    """
    require("models", name)
    if Path(name).is_dir():
        return Path(name)
    # The hub keeps sentence-transformers' own models under the organisation of that name.
    hub_name = name if "/" in name else f"sentence-transformers/{name}"
    folder = find(hub_name)
    if folder is None:
        raise EmbedderUnavailable(
            f"no embedder {name!r} on this machine: give 'minilm', the folder of a "
            f"sentence-transformers model, or fetch it once with `hf download {hub_name}`",
            embedder=name,
        )
    return folder


def load_default(options: Options) -> Loaded:
    """Load the default embedder: its packaged files, or by torch what only torch has.

    Raises:
        EmbedderUnavailable: the options exclude each other.
        ModelUnavailable: torch is to run it, and its published weights are not installed.
        DeviceUnavailable: the device is not there.
    """
    from posology.index.embedders.packaged import load_packaged

    _check(options, DEFAULT)
    by_torch = options.backend == "torch" or options.precision in ("float32", "bfloat16")
    if by_torch or _accelerated(options.device):
        require("models", "the default embedder on torch")
        if options.backend == "onnx":
            return load_best(published(), embedder=DEFAULT, options=options)
        return load_folder(
            published(), embedder=DEFAULT, precision=options.precision, device=options.device
        )
    return load_packaged(threads=options.threads)


def load_best(folder: Path, *, embedder: str, options: Options) -> Loaded:
    """Load the model in ``folder`` with the backend that the options name.

    ``auto`` is ONNX with int8 if there is a cache for the export and the export is faithful, else torch. Accelerators, and
    precisions that only torch has, use torch.

    Raises:
        EmbedderUnavailable: the files are no sentence-transformers model of text, or damaged; or ONNX is
            demanded, and the model cannot be exported, or is to run elsewhere than on the CPU.
        DeviceUnavailable: the device is not there.
    """
    from posology.index.embedders.onnx.forward import NotExported

    _check(options, embedder)
    demanded = options.backend == "onnx"
    if demanded or _onnx_is_best(options):
        try:
            return load_exported(folder, embedder=embedder, options=options)
        # a cache that cannot be written to, a library that is missing, a model that has no export
        except (OSError, ImportError, MemoryError, NotExported) as error:
            if demanded or options.precision == "int8":
                raise EmbedderUnavailable(
                    f"{folder} has no ONNX model, and the export failed: {error}", embedder=embedder
                ) from error
            # the fault of a model is remembered, so that it is logged once
            new = isinstance(error, NotExported) and not error.known
            level = logging.WARNING if new else logging.INFO
            logger.log(level, "embedder runs on torch embedder=%s reason: %s", embedder, error)
    return load_folder(
        folder, embedder=embedder, precision=options.precision, device=options.device
    )


def _check(options: Options, embedder: str) -> None:
    """Refuse options that exclude each other.

    Raises:
        EmbedderUnavailable: they do.
    """
    demanded = options.backend == "onnx"
    if demanded and options.precision == "bfloat16":
        raise EmbedderUnavailable(
            "ONNX supports float32 and int8 (got bfloat16)", embedder=embedder
        )
    if options.backend == "torch" and options.precision == "int8":
        raise EmbedderUnavailable(
            "torch supports float32 and bfloat16 (got int8)", embedder=embedder
        )
    only_onnx = demanded or options.precision == "int8"
    if only_onnx and options.device != AUTO and _accelerated(options.device):
        raise EmbedderUnavailable(
            f"ONNX runs on the CPU only (got device {options.device!r})", embedder=embedder
        )


def load_exported(folder: Path, *, embedder: str, options: Options) -> Loaded:
    """Load the export of the model in ``folder``, making it if it is not in the cache.

    Raises:
        EmbedderUnavailable: the files are no sentence-transformers model of text, or damaged.
        NotExported: it has no faithful export.
        OSError: the cache cannot be written to.
    """
    from posology.index.embedders.onnx.export import RECIPE, make, sample
    from posology.index.embedders.onnx.files import Export, find_or_make, key
    from posology.index.embedders.onnx.forward import NotExported, OnnxForward

    arithmetic: Arithmetic = "float32" if options.precision == "float32" else "int8"
    bits = 8 if has_dot_products() else 7

    def export() -> Export:
        model = _open(folder, embedder=embedder)
        card = _card(model, folder)
        return Export(
            model=make(model, folder, card, arithmetic=arithmetic, bits=bits),
            tokenizer=model.tokenizer.backend_tokenizer.to_str(),
            card=card,
        )

    how = (f"{arithmetic} {bits}", str(RECIPE), *sample())
    if options.cache is None:
        made = export()
    else:
        made = find_or_make(options.cache, key(folder, digest(folder), *how), export)
    try:
        forward = OnnxForward(made.model, made.card, threads=options.threads, arithmetic=arithmetic)
    # ONNX Runtime raises classes of its own, which are no part of its interface
    except Exception as error:
        raise NotExported(f"ONNX Runtime cannot load the model: {error}") from error
    return Loaded(card=made.card, tokenizer=made.tokenizer, forward=forward)


def load_folder(
    folder: Path, *, embedder: str, precision: Precision, device: str = "cpu"
) -> Loaded:
    """Load the model in ``folder`` with torch.

    Args:
        folder: its files.
        embedder: its name, for error messages.
        precision: of the forward passes, as :func:`torch_dtype` takes it.
        device: as :func:`~posology.devices.find_device` takes it.

    Raises:
        EmbedderUnavailable: the files are no sentence-transformers model of text, or damaged.
        DeviceUnavailable: the device is not there.
    """
    from posology.index.embedders.torch_forward import TorchForward

    where = find_device(device)
    model = _open(folder, embedder=embedder, device=where)
    model.to(torch_dtype(precision, where))
    return Loaded(
        card=_card(model, folder),
        tokenizer=model.tokenizer.backend_tokenizer.to_str(),
        forward=TorchForward(model),
    )


def torch_dtype(precision: Precision, device: str) -> torch.dtype:
    """Return the arithmetic of a model that torch runs.

    Args:
        precision: ``auto``: float16 on accelerators, bfloat16 on CPUs that have it in hardware, else float32.
            ``int8``, which torch does not have, counts as ``auto``.
        device: where it runs, by torch's name.
    """
    import torch

    if precision == "float32":
        return torch.float32
    if precision == "bfloat16":
        return torch.bfloat16
    if device != CPU:
        return torch.float16
    return torch.bfloat16 if has_native_bfloat16() else torch.float32


def has_native_bfloat16() -> bool:
    """Return whether this CPU multiplies bfloat16 in hardware; without that it is slower than float32."""
    import torch

    report = getattr(torch.cpu, "get_capabilities", None)  # not before torch 2.11
    capabilities: Mapping[str, Any] = report() if report else {}
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


def has_dot_products() -> bool:
    """Return whether this CPU's products of bytes are summed without saturating: x86 with VNNI, and all others.

    If unknown, ``False``: this costs some precision and is correct on all CPUs.
    """
    import platform

    if platform.machine().lower() not in ("x86_64", "amd64", "i386", "i686"):
        return True
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return "avx512_vnni" in flags or "avx_vnni" in flags


def _open(folder: Path, *, embedder: str, device: str = "cpu") -> SentenceTransformer:
    try:
        with loading():
            import torch
            from sentence_transformers import SentenceTransformer

            # Eager attention: on CPUs it is faster than the fused kernel for texts this short. Another dtype
            # than float32 would be every thread's default while this one loads.
            model = SentenceTransformer(
                str(folder),
                device=device,
                local_files_only=True,
                model_kwargs={"attn_implementation": "eager", "dtype": torch.float32},
            )
    # the parsers of damaged files raise any class of error
    except Exception as error:
        raise _unusable(folder, embedder, str(error)) from error
    if model.get_embedding_dimension() is None or not getattr(model.tokenizer, "is_fast", False):
        raise _unusable(folder, embedder, "a fast tokenizer, or the dimension, is missing")
    model.eval()
    return model


def _card(model: SentenceTransformer, folder: Path) -> Card:
    dim = int(model.get_embedding_dimension() or 0)
    limit = _input_limit(model)
    pooling = _pooling(model)
    kind = getattr(model.config, "model_type", "unknown")
    pad = getattr(model.tokenizer, "pad_token_id", None)
    return Card(
        name=f"{kind}-{dim}:{digest(folder)}:{pooling}:{limit}",
        dim=dim,
        limit=limit,
        pooling=pooling,
        pools_prompt=all(getattr(module, "include_prompt", True) for module in model),
        prompts={kind: prompt for kind, prompt in model.prompts.items() if prompt},
        pad=0 if pad is None else int(pad),
    )


def _onnx_is_best(options: Options) -> bool:
    if options.backend == "torch" or options.precision not in ("auto", "int8"):
        return False
    if options.precision == "int8":
        return True
    return options.cache is not None and not _accelerated(options.device)


def _accelerated(device: str) -> bool:
    return find_device(device) != CPU


def _input_limit(model: SentenceTransformer) -> int:
    # A tokenizer without a limit of its own reports a huge number, and a model without one perhaps -1.
    positions = getattr(model.config, "max_position_embeddings", None)
    stated = [int(n) for n in (model.max_seq_length, positions) if n and 0 < n < 1_000_000]
    return min(stated, default=UNSTATED_LIMIT)


def _pooling(model: SentenceTransformer) -> str:
    """Return the pooling mode; any module that changes the pooled vector's direction makes it another."""
    names = [type(module).__name__ for module in model]
    modes = [str(getattr(m, "pooling_mode", "")) for m in model if hasattr(m, "pooling_mode")]
    changed = [n for n in names[1:] if n not in ("Pooling", "Normalize")]
    return "+".join([*modes, *changed]) or "none"


def _unusable(folder: Path, embedder: str, reason: str) -> EmbedderUnavailable:
    return EmbedderUnavailable(
        f"{folder} cannot be loaded as a sentence-transformers model of text: {reason}",
        embedder=embedder,
    )
