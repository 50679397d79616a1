"""JSON output of the commands that set Posology up."""

from __future__ import annotations

from posology.published.base import Published


class SettingOutput(Published):
    """One setting."""

    name: str
    """Name in `posology.toml`."""
    variable: str
    """Environment variable."""
    value: str | None
    """Value as text; null: none, or a secret."""
    secret: bool
    """Whether the value is a secret, which is never shown."""
    source: str
    """`default`, `environment`, `stored key`, `folder` (the index in the current folder) or the path of a file."""


class ConfigOutput(Published):
    """Output of `posology config show --json`."""

    settings: tuple[SettingOutput, ...]
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
