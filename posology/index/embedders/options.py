"""Computation options of an embedder, which do not affect the index. Figures: docs/concepts/onnx.md."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

#: arithmetic of the forward passes: torch has float32 and bfloat16, ONNX float32 and int8
Precision: TypeAlias = Literal["auto", "float32", "bfloat16", "int8"]
#: library that runs the forward passes
Backend: TypeAlias = Literal["auto", "torch", "onnx"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """Options of loaders besides the model's name. Loaders ignore options that do not apply."""

    precision: Precision = "auto"
    backend: Backend = "auto"
    #: folder of exported models; ``None``: none, and ``auto`` does not export
    cache: Path | None = None
    #: threads of an ONNX forward pass; ``None``: one per core
    threads: int | None = None
    #: see :func:`posology.devices.find_device`; ONNX runs on the CPU only
    device: str = "cpu"
