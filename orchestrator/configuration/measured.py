"""Measurements of models by `posology models check`: a file in the folder of ``POSOLOGY_HOME``.

They make the bound on input stricter, and never laxer: a few prompts show that a bound is too low, not that it is too
high. Without the file, the table of families holds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from orchestrator.settings import Settings
from posology.errors import ConfigurationError

NAME = "measured.json"
#: by how much more than the largest measured share the bound is raised: other texts may count more
MARGIN = 1.1
#: a share beyond this is an error of measurement
_MOST = 100.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """The last check of a model."""

    #: day of the check, UTC
    day: date
    #: largest share of the table's bound that the provider counted, of all checks; ``None``: nothing was counted
    share: float | None
    #: findings of the last check by name; ``None``: nothing could be concluded
    findings: Mapping[str, bool | None]


def file_of(settings: Settings) -> Path:
    """Return the place of the file."""
    return Path(settings.home).expanduser() / NAME


def read(settings: Settings) -> Mapping[str, Measured]:
    """Return the measurements by model, in lower case; none without a file.

    Raises:
        ConfigurationError: the file cannot be read, or is not one of this command.
    """
    path = file_of(settings)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return {model: _measured(row) for model, row in data.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigurationError(
            f"{path} cannot be read ({type(error).__name__}): delete it, and check the models again"
        ) from None


def share(of: Settings, to: Settings) -> None:
    """Add the measurements in one folder to those in another.

    Raises:
        ConfigurationError: a file cannot be read or written.
    """
    if file_of(of).resolve() != file_of(to).resolve():
        for model, check in read(of).items():
            write(to, model, check)


def write(settings: Settings, model: str, check: Measured) -> Path:
    """Add a check to the file, and return its place. A larger share of an earlier check stays.

    Raises:
        ConfigurationError: the file cannot be read or written.
    """
    known = dict(read(settings))
    name = model.strip().lower()
    shares = [
        one.share for one in (check, known.get(name)) if one is not None and one.share is not None
    ]
    rows = {
        **{other: _row(one, one.share) for other, one in known.items()},
        name: _row(check, max(shares, default=None)),
    }
    path = file_of(settings)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written ({error.strerror})") from None
    return path


def factors(found: Mapping[str, Measured]) -> Mapping[str, float]:
    """Return by how much the table's bound is raised, for models that counted more than it."""
    return {
        model: one.share * MARGIN
        for model, one in found.items()
        if one.share is not None and one.share > 1
    }


def _row(found: Measured, share: float | None) -> dict[str, object]:
    return {"day": found.day.isoformat(), "share": share, "findings": dict(found.findings)}


def _measured(row: Mapping[str, object]) -> Measured:
    share, findings = row["share"], row["findings"]
    if share is not None and not (isinstance(share, int | float) and 0 < share <= _MOST):
        raise ValueError("share")
    if not isinstance(findings, dict):
        raise TypeError("findings")
    return Measured(
        day=date.fromisoformat(str(row["day"])),
        share=None if share is None else float(share),
        findings={str(name): None if ok is None else bool(ok) for name, ok in findings.items()},
    )
