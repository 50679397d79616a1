"""The Lua scripts of shards: files under ``lua``, each with the same beginning."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def source(name: str) -> str:
    """The whole text of a script."""
    folder = files("orchestrator.ingest.shards") / "lua"
    library = (folder / "_lib.lua").read_text(encoding="utf-8")
    return library + (folder / f"{name}.lua").read_text(encoding="utf-8")
