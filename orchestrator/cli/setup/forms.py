"""JSON output of the commands that set Posology up."""

from __future__ import annotations

from orchestrator.settings.origin import Origin
from posology.published.base import Published


class ConfigOutput(Published):
    """Output of `posology config show --json`."""

    settings: tuple[Origin, ...]
    """All settings."""
    files: tuple[str, ...]
    """Configuration files that were read, the most important first."""
    places: tuple[str, ...]
    """Places where configuration files are looked for, the most important first."""


class CheckOutput(Published):
    """One check of `posology doctor`."""

    name: str
    """What was checked."""
    ok: bool | None
    """Whether it is fine; null: a remark, nothing is wrong."""
    found: str
    """What was found."""
    remedy: str | None
    """What to do; null: nothing."""


class DoctorOutput(Published):
    """Output of `posology doctor --json`."""

    ok: bool
    """Whether nothing is wrong."""
    checks: tuple[CheckOutput, ...]
    """All checks."""
