"""How to reach the providers: keys and addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from orchestrator.configuration.files import OFF
from orchestrator.settings.sources import config_choice, variable
from posology.llm.providers.table import PROVIDERS

if TYPE_CHECKING:
    from orchestrator.configuration.keys import Keys


@dataclass(frozen=True, kw_only=True, slots=True)
class Credentials:
    """How to reach a provider; ``None``: its variable is not set."""

    api_key: SecretStr | None = None
    base_url: str | None = None


def read_credentials(files: Mapping[str, Any]) -> Mapping[str, Credentials]:
    """Return the credentials of each provider by its name; stored keys are not among them.

    Args:
        files: values of the configuration files by environment variable.
    """
    found = {}
    for row in PROVIDERS.values():
        key, url = (variable(name) for name in (row.key_variable, row.url_variable))
        if url is None and row.url_variable:
            url = files.get(row.url_variable)
        found[row.name] = Credentials(api_key=SecretStr(key) if key else None, base_url=url)
    return found


def key_providers() -> tuple[str, ...]:
    """Return the providers that take an API key."""
    return tuple(row.name for row in PROVIDERS.values() if row.key_variable)


def keys() -> Keys | None:
    """Return the stored keys of the user; ``None``: they are not to be read."""
    from orchestrator.configuration.files import user_folder
    from orchestrator.configuration.keys import Keys

    return None if config_choice() == OFF else Keys(user_folder())
