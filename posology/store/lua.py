"""Text of Lua scripts, which packages keep in their folder ``lua``."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def lua(package: str, *names: str) -> str:
    """Return the joined text of Lua files in a package's folder ``lua``.

    Args:
        package: e.g. ``orchestrator.jobs``.
        names: of the files, without their ending; a library comes before the script.
    """
    folder = files(package) / "lua"
    return "".join((folder / f"{name}.lua").read_text(encoding="utf-8") for name in names)
