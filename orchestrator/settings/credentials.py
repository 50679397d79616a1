"""How to reach the providers: keys and addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    #: values of the provider's other variables, as far as they are set
    more: Mapping[str, str] = field(default_factory=dict)


def read_credentials(files: Mapping[str, Any]) -> Mapping[str, Credentials]:
    """Return the credentials of each provider by its name; stored keys are not among them.

    Args:
        files: values of the configuration files by environment variable.
    """
    found = {}
    for row in PROVIDERS.values():
        key = variable(row.key_variable)
        plain = [*([row.url_variable] if row.url_variable else []), *row.more]
        values = {name: variable(name) or files.get(name) for name in plain}
        found[row.name] = Credentials(
            api_key=SecretStr(key) if key else None,
            base_url=values.pop(row.url_variable, None) if row.url_variable else None,
            more={name: value for name, value in values.items() if value},
        )
    return found


def key_providers() -> tuple[str, ...]:
    """Return the providers that take an API key."""
    return tuple(row.name for row in PROVIDERS.values() if row.key_variable)


def local_providers() -> tuple[str, ...]:
    """Return the providers that are servers of one's own, which may run at their default addresses."""
    return tuple(row.name for row in PROVIDERS.values() if row.local and row.url_variable)


def needs_key(provider: str) -> bool:
    """Return whether a provider's models cannot be called without its API key."""
    row = PROVIDERS.get(provider)
    return row is not None and row.key_variable is not None and not row.key_optional


def keys() -> Keys | None:
    """Return the stored keys of the user; ``None``: they are not to be read."""
    from orchestrator.configuration.files import user_folder
    from orchestrator.configuration.keys import Keys

    return None if config_choice() == OFF else Keys(user_folder())
