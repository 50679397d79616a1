"""Where the value of each setting comes from."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.settings.credentials import keys
from orchestrator.settings.settings import Settings, config_files, known_keys
from orchestrator.settings.sources import aliases, variable
from posology.described import published
from posology.llm.providers.table import PROVIDERS


@published("SettingOutput")
@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
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


def origins(settings: Settings) -> tuple[Origin, ...]:
    """Return each setting with the source of its value.

    Raises:
        ConfigurationError: a file or the stored keys cannot be read.
    """
    files = config_files()
    stored = keys()
    places = stored.places() if stored else {}
    by_key = {row.key_variable: row.name for row in PROVIDERS.values()}
    by_url = {row.url_variable: row.name for row in PROVIDERS.values()}
    by_more = {variable: row.name for row in PROVIDERS.values() for variable in row.more}
    entries = []
    for name, key in known_keys().items():
        names = [key.variable]
        if name in Settings.model_fields:
            value = getattr(settings, name)
            names = [*aliases(Settings.model_fields[name])]
        elif key.variable in by_url:
            value = settings.credentials(by_url[key.variable]).base_url
        elif key.variable in by_more:
            value = settings.credentials(by_more[key.variable]).more.get(key.variable)
        else:
            value = None
        source = "default"
        if any(map(variable, names)):
            source = "environment"
        elif file := next((file for file in files if key.variable in file.values), None):
            source = str(file.path)
        elif by_key.get(key.variable) in places:
            source = f"stored key ({places[by_key[key.variable]]})"
        elif name == "index" and value is not None:
            source = "folder"
        text = None if value is None or key.secret else str(value)
        entries.append(
            Origin(name=name, variable=key.variable, value=text, secret=key.secret, source=source)
        )
    return tuple(entries)
