"""How an embedder computes: what may change without another index. Figures: docs/concepts/onnx.md."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

#: arithmetic of the forward passes: torch has float32 and bfloat16, ONNX float32 and int8
Precision: TypeAlias = Literal["auto", "float32", "bfloat16", "int8"]
#: what runs the forward passes
Backend: TypeAlias = Literal["auto", "torch", "onnx"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """Options of loaders besides the model's name. Loaders ignore options that do not apply."""

    precision: Precision = "auto"
    backend: Backend = "auto"
    #: where exported models are kept; ``None``: nowhere, and ``auto`` exports nothing
    cache: Path | None = None
    #: threads of one forward pass of ONNX; ``None``: one a core
    threads: int | None = None
    #: as :func:`posology.devices.find_device` takes it; ONNX has the CPU alone
    device: str = "cpu"
