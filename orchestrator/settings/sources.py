"""Where values of settings come from: environment variables, and the keys of configuration files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from pydantic import SecretStr

from orchestrator.configuration.files import Key
from posology.llm.providers.table import PROVIDERS

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo


def variable(name: str | None) -> str | None:
    """Return the value of an environment variable; ``None``: it is not set, or empty."""
    return os.environ.get(name) or None if name else None


def config_choice() -> str | None:
    """Return ``POSOLOGY_CONFIG``: one configuration file, or ``off``; ``None``: the usual ones."""
    return variable("POSOLOGY_CONFIG")


def index_here() -> str | None:
    """Return the index in the current folder, ``index``; ``None``: there is none."""
    return "index" if Path("index", "passages.lance").is_dir() else None


def keys_of(fields: Mapping[str, FieldInfo]) -> Mapping[str, Key]:
    """Return the keys of configuration files by name.

    Args:
        fields: fields of the settings by name.
    """
    found = {}
    for name, field in fields.items():
        kinds = set(get_args(field.annotation)) or {field.annotation}
        found[name] = Key(
            variable=field.alias or name,
            secret=SecretStr in kinds,
            bare=bool(kinds & {int, float, bool}) and str not in kinds,
        )
    for row in PROVIDERS.values():
        if row.key_variable:
            found[row.key_variable.lower()] = Key(variable=row.key_variable, secret=True)
        if row.url_variable:
            found[row.url_variable.lower()] = Key(variable=row.url_variable)
    return found
