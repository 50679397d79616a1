"""Where values of settings come from: environment variables, and the keys of configuration files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from pydantic import AliasChoices, SecretStr

from orchestrator.configuration.files import Key
from posology.llm.providers.table import PROVIDERS

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

#: settings that count from the user's own file and from variables alone, beside addresses of providers: a file that came
#: with a download sends no key, no text and no question elsewhere, makes no call look cheaper, and opens no service
OWN = frozenset(
    {
        *("redis_url", "s3_endpoint", "aws_region", "eutils_url", "europepmc_url", "email"),
        *("clinicaltrials_url", "unpaywall_url"),
        *("zotero_url", "zotero_local_url"),
        *("otlp_endpoint", "trace_texts", "log_questions"),
        *("prices", "prompts", "tiktoken_files", "cache", "xdg_cache"),
        *("auth", "hosts", "uploads", "open_uploads", "reports", "webhook_networks"),
        "console_secure",
        *("oidc_issuer", "oidc_client_id", "oidc_client_secret", "oidc_audience"),
        *("oidc_groups", "oidc_operators", "oidc_claim"),
    }
)


def variable(name: str | None) -> str | None:
    """Return the value of an environment variable; ``None``: it is not set, or empty."""
    return os.environ.get(name) or None if name else None


def environment_values(fields: Mapping[str, FieldInfo]) -> Mapping[str, str]:
    """Return the environment variables that are set and not empty, each by the name of its field's first variable.

    The case of variables does not matter.

    Args:
        fields: fields of the settings by name.
    """
    known = {name.lower(): value for name, value in os.environ.items() if value}
    found = {}
    for name, field in fields.items():
        for alias in aliases(field):
            if (value := known.get(alias.lower())) is not None:
                found[field.alias or name] = value
                break
    return found


def aliases(field: FieldInfo) -> Sequence[str]:
    """Return the environment variables of a field, the most important first."""
    choices = field.validation_alias
    if isinstance(choices, AliasChoices):
        return [choice for choice in choices.choices if isinstance(choice, str)]
    return [field.alias] if field.alias else []


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
    keys = {}
    for name, field in fields.items():
        kinds = set(get_args(field.annotation)) or {field.annotation}
        keys[name] = Key(
            variable=field.alias or name,
            secret=SecretStr in kinds,
            bare=bool(kinds & {int, float, bool}) and str not in kinds,
            own=name in OWN,
        )
    for row in PROVIDERS.values():
        if row.key_variable:
            keys[row.key_variable.lower()] = Key(variable=row.key_variable, secret=True, own=True)
        if row.url_variable:
            keys[row.url_variable.lower()] = Key(variable=row.url_variable, own=True)
        for name in row.more:
            keys.setdefault(name.lower(), Key(variable=name, own=True))
    return keys
