"""Configuration files: ``posology.toml`` in the current folder, then in the user's configuration folder.

A file's keys are the settings' names. Secrets do not belong into it: files are shared and committed. The file in the
current folder may come with a download, so it decides nothing that a stranger must not.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from posology.errors import ConfigurationError

NAME = "posology.toml"
#: value of ``POSOLOGY_CONFIG`` for neither files nor stored keys
OFF = "off"


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """One key of a configuration file."""

    #: environment variable of the same setting
    variable: str
    secret: bool = False
    #: whether only a number or true/false is meant, so that quotes are a mistake
    bare: bool = False
    #: whether the user alone decides it: where keys and texts go, what a call costs, who may use a service
    own: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class File:
    """A configuration file that was read."""

    path: Path
    #: by environment variable
    values: Mapping[str, Any]


def user_folder() -> Path:
    """Return the user's configuration folder of Posology."""
    from platformdirs import user_config_path

    return user_config_path("posology", appauthor=False)


def locations(chosen: str | None) -> tuple[Path, ...]:
    """Return the places of configuration files, the most important first.

    Args:
        chosen: ``POSOLOGY_CONFIG``: one file instead of both, or ``off``; ``None``: not set.
    """
    if chosen == OFF:
        return ()
    if chosen:
        return (Path(chosen).expanduser(),)
    return (Path(NAME), user_folder() / NAME)


def read(chosen: str | None, known: Mapping[str, Key]) -> tuple[File, ...]:
    """Read the configuration files that exist, the most important first.

    Args:
        chosen: see :func:`locations`.
        known: every key, by name.

    Raises:
        ConfigurationError: a file cannot be read, has an unknown key, or a secret.
    """
    paths = locations(chosen)
    if chosen and paths and not paths[0].is_file():
        raise ConfigurationError(
            f"POSOLOGY_CONFIG names no file (got {chosen}): correct or unset it"
        )
    return tuple(
        _read(path, known, foreign=not chosen and is_foreign(path))
        for path in paths
        if path.is_file()
    )


def is_foreign(path: Path) -> bool:
    """Return whether a configuration file is the one of the current folder, and not also the user's."""
    at = path.resolve()
    return at == Path(NAME).resolve() and at != (user_folder() / NAME).resolve()


def _read(path: Path, known: Mapping[str, Key], *, foreign: bool) -> File:
    import tomllib

    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path} is not valid TOML: {error}") from None
    return File(
        path=path,
        # an empty text counts as not set, as an empty variable does
        values={
            _known(path, name, value, known, foreign=foreign): _value(value)
            for name, value in table.items()
            if value != "" or name not in known
        },
    )


def _known(path: Path, name: str, value: object, known: Mapping[str, Key], *, foreign: bool) -> str:
    key = known.get(name)
    if key is None:
        near = difflib.get_close_matches(name.lower().removeprefix("posology_"), known, n=1)
        hint = f"Did you mean {near[0]}?" if near else "`posology config show` lists all settings."
        raise ConfigurationError(f"{path}: there is no setting {name!r}. {hint}")
    # an address without a password is no secret
    if key.secret and not (name == "redis_url" and isinstance(value, str) and "@" not in value):
        provider, _, kind = name.rpartition("_api_key")
        instead = (
            f"run `posology keys set {provider}`" if provider and not kind
            else f"set the environment variable {key.variable}"
        )  # fmt: skip
        raise ConfigurationError(
            f"{path}: {name} is a secret, and files are shared and committed. Remove it, and {instead}."
        )
    if key.own and foreign:
        raise ConfigurationError(
            f"{path}: {name} decides where keys and texts go, what a call costs, or who may use a service, and a file in the "
            f"current folder may be another's. Move it to {user_folder() / NAME}, or set {key.variable}; to read this file "
            f"as yours, set POSOLOGY_CONFIG={path}."
        )
    if key.bare and isinstance(value, str):
        raise ConfigurationError(
            f"{path}: {name} must be a number or true/false, without quotes (got {value!r})"
        )
    return key.variable


def _value(value: object) -> object:
    # a shell would have expanded it
    if isinstance(value, str) and (value == "~" or value.startswith("~/")):
        return os.path.expanduser(value)  # noqa: PTH111 - the text stays as it is written
    return value
