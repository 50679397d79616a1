"""Devices that torch runs models on, and the cores of the CPU."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Final

from posology.errors import DeviceUnavailable

#: an accelerator where there is one, else the CPU
AUTO: Final = "auto"
CPU: Final = "cpu"


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def find_device(wanted: str | None = AUTO) -> str:
    """Return torch's name of a device, after writing a number to it and reading it back. Blocking.

    Encoders, MedCPT's cross-encoder, Provence and summarisers use this device. Next-sentence models and the causal models
    of self-information run on the CPU.

    Args:
        wanted: ``cpu``; another device by torch's name, such as ``cuda`` or ``cuda:1``; ``auto`` or ``None``:
            ``cuda`` if there is one, else ``cpu``.

    Raises:
        DeviceUnavailable: torch knows no such device, or this machine has none that answers.
    """
    if wanted == CPU:
        return CPU
    if find_spec("torch") is None:
        if wanted in (AUTO, None):
            return CPU
        raise DeviceUnavailable(
            f"device {wanted!r} needs the package torch: pip install 'posology[models]'",
            device=wanted,
        )
    import torch

    if wanted in (AUTO, None):
        wanted = "cuda" if torch.cuda.is_available() else CPU
    try:
        found = torch.device(wanted)
        torch.ones(1, device=found).item()
    # each kind of device raises its own error
    except Exception as error:
        reason = str(error).partition("\n")[0]
        raise DeviceUnavailable(
            f"no device {wanted!r} on this machine, use 'cpu' or 'auto': {reason}", device=wanted
        ) from error
    return CPU if found.type == CPU else str(found)
