"""Weights and settings of models from files, none of which is ever run.

A checkpoint's own Python files are not looked at, and a pickle is read for tensors alone.
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

#: what a folder may hold its weights in, the safe format first
_SAFE, _PICKLED = "model.safetensors", "pytorch_model.bin"
#: Architectures that come with code of their own, and the one of transformers that has the same weights by
#: the same names: as published in naver/provence-reranker-debertav3-v1.
PUBLISHED: Mapping[str, str] = MappingProxyType({"Provence": "deberta-v2"})


def published(config: Mapping[str, Any]) -> str | None:
    """The architecture of transformers that a published checkpoint's own is; ``None``: it has none of its own."""
    named = [config.get("model_type"), *(config.get("architectures") or [])]
    return next((PUBLISHED[name] for name in named if name in PUBLISHED), None)


def read_config(folder: Path, model: str) -> dict[str, Any]:
    """The settings in ``config.json``, but for what would lead to the checkpoint's own code.

    Raises:
        ModelUnavailable: they cannot be read.
    """
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelUnavailable(
            f"{path} does not say what the model is: {error}", model=model
        ) from error
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise ModelUnavailable(f"{path} names no model_type", model=model)
    config.pop("auto_map", None)
    return config


def read_weights(folder: Path, model: str) -> dict[str, Tensor]:
    """All tensors of a checkpoint by name, on the CPU.

    Raises:
        ModelUnavailable: there are none, or they are damaged; or a pickle holds more than tensors.
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
        # damaged files surface as whatever the reader of that format raises
        except Exception as error:
            raise ModelUnavailable(
                f"the weights in {folder} do not load: {error}", model=model
            ) from error
        if found:
            return found
    raise ModelUnavailable(f"{folder} has neither {_SAFE} nor {_PICKLED}", model=model)


def _inside(folder: Path, name: str) -> Path:
    if Path(name).name != name:
        raise ValueError(f"a shard {name!r} is none of this folder")
    return folder / name


def _read(file: Path) -> dict[str, Tensor]:
    import torch
    from safetensors.torch import load_file

    if file.suffix == ".safetensors":
        return load_file(file)
    loaded: dict[str, Tensor] = torch.load(file, map_location="cpu", weights_only=True)
    return loaded
