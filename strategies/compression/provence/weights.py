"""Weights and settings of checkpoints, read without executing any code.

Python files of a checkpoint are ignored, and only tensors are read from pickles.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from posology.errors import ModelUnavailable

if TYPE_CHECKING:
    from torch import Tensor

#: files of weights, the safe format first
_SAFE, _PICKLED = "model.safetensors", "pytorch_model.bin"
#: Architectures with their own code, and the architecture of transformers with the same weights under the same
#: names, as published in naver/provence-reranker-debertav3-v1.
PUBLISHED: Mapping[str, str] = MappingProxyType({"Provence": "deberta-v2"})


def published(config: Mapping[str, Any]) -> str | None:
    """Return the architecture of transformers for a published checkpoint; ``None``: it is not one."""
    named = [config.get("model_type"), *(config.get("architectures") or [])]
    return next((PUBLISHED[name] for name in named if name in PUBLISHED), None)


def read_config(folder: Path, model: str) -> dict[str, Any]:
    """Read ``config.json``, without references to the checkpoint's code.

    Raises:
        ModelUnavailable: the file cannot be read.
    """
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelUnavailable(f"cannot read {path}: {error}", model=model) from error
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise ModelUnavailable(f"{path} has no model_type", model=model)
    config.pop("auto_map", None)
    return config


def read_weights(folder: Path, model: str) -> dict[str, Tensor]:
    """Read all tensors of a checkpoint by name, on the CPU.

    Raises:
        ModelUnavailable: the weights are missing or damaged, or a pickle holds other objects.
    """
    for name in (_SAFE, _PICKLED):
        index = folder / f"{name}.index.json"
        files = [folder / name] if (folder / name).is_file() else []
        try:
            if not files and index.is_file():
                shards = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
                files = [_inside(folder, shard) for shard in sorted(set(shards.values()))]
            found: dict[str, Tensor] = {}
            for file in files:
                found |= _read(file)
        # readers raise any class for damaged files
        except Exception as error:
            raise ModelUnavailable(
                f"cannot load the weights in {folder}: {error}", model=model
            ) from error
        if found:
            return found
    raise ModelUnavailable(f"{folder} has neither {_SAFE} nor {_PICKLED}", model=model)


def _inside(folder: Path, name: str) -> Path:
    if Path(name).name != name:
        raise ValueError(f"shard {name!r} is not in this folder")
    return folder / name


def _read(file: Path) -> dict[str, Tensor]:
    import torch
    from safetensors.torch import load_file

    if file.suffix == ".safetensors":
        return load_file(file)
    loaded: dict[str, Tensor] = torch.load(file, map_location="cpu", weights_only=True)
    return loaded
