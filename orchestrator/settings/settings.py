"""The configuration as a whole, and how it is read."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, PrivateAttr, SecretStr, ValidationError

from orchestrator.configuration.files import OFF, File, Key, read
from orchestrator.settings.credentials import Credentials, keys, read_credentials
from orchestrator.settings.fields import Fields
from orchestrator.settings.sources import config_choice, environment_values, index_here, keys_of
from orchestrator.settings.sources import variable as read_variable
from orchestrator.settings.values import (
    DEFAULT_REDIS,
    ReaderOptions,
    collections,
    networks,
    off,
)
from posology.errors import ConfigurationError, InputError
from posology.llm.models.names import parse
from posology.llm.pace import floor_of
from posology.llm.providers.table import PROVIDERS

if TYPE_CHECKING:
    from posology.index.embedders.options import Options

#: prefix of embedders that are paid for
_PAID = "openai"


class Settings(Fields):
    """The configuration, read once. Everything else in the system takes arguments.

    Environment variables come before ``posology.toml`` in the current folder, and that before the user's.
    """

    model_config = ConfigDict(defer_build=False)

    #: read once, with the fields; the table of providers names the variables
    _credentials: Mapping[str, Credentials] = PrivateAttr(
        default_factory=lambda: read_credentials(file_values())
    )

    def __init__(self, **given: Any) -> None:
        """Read the configuration.

        Args:
            given: values by environment variable, which come before all others.

        Raises:
            ValidationError: a value is invalid.
            ConfigurationError: a configuration file is invalid.
        """
        fields = type(self).model_fields
        usual = {"POSOLOGY_INDEX": index} if (index := index_here()) else {}
        super().__init__(**{**usual, **file_values(), **environment_values(fields), **given})

    def credentials(self, provider: str) -> Credentials:
        """Return the API key and base URL of a provider of the table; a stored key if no variable is set.

        Raises:
            ConfigurationError: the stored key cannot be read.
        """
        found = self._credentials[provider]
        if found.api_key is not None or PROVIDERS[provider].key_variable is None:
            return found
        stored = keys()
        key = stored.get(provider) if stored else None
        return replace(found, api_key=SecretStr(key)) if key else found

    def floor(self, provider: str) -> float | None:
        """Return the fewest tokens a second that a provider of the table writes, see :func:`~posology.llm.pace.floor_of`."""
        return floor_of(self.address(provider), self.min_tokens_per_second)

    def address(self, provider: str) -> str | None:
        """Return the base URL of a provider of the table; ``None``: another's service, at its own address."""
        url = self._credentials[provider].base_url or PROVIDERS[provider].address
        # OLLAMA_HOST may be a host and a port
        return url if url is None or "://" in url else f"http://{url}"

    def reached_at(self, model: str, url: str | None) -> Settings:
        """Return the settings with another base URL of a model's provider; ``None``: as configured.

        Raises:
            InputError: the provider has none, or there is no such provider.
        """
        if url is None:
            return self
        row = PROVIDERS[parse(model).provider]
        if row.url_variable is None:
            raise InputError(f"{model} has no base URL", model=model)
        found = self.model_copy()
        known = self._credentials[row.name]
        found._credentials = {**self._credentials, row.name: replace(known, base_url=url)}  # noqa: SLF001 - a copy of this
        return found

    def environment(self) -> Mapping[str, str]:
        """Return these values and the stored keys as environment variables, for processes of this one.

        A process started with them reads no file, so that it has the same values wherever it runs.

        Raises:
            ConfigurationError: a stored key cannot be read.
        """
        variables = {"POSOLOGY_CONFIG": OFF}
        for name in self.model_fields_set:
            value, field = getattr(self, name), type(self).model_fields[name]
            if value is None and field.default is None:
                continue
            text = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
            variables[field.alias or name] = "off" if value is None else text
        for row in PROVIDERS.values():
            known = self.credentials(row.name)
            if row.key_variable and known.api_key:
                variables[row.key_variable] = known.api_key.get_secret_value()
            if row.url_variable and known.base_url:
                variables[row.url_variable] = known.base_url
            variables |= known.more
        return variables

    @property
    def known_hosts(self) -> tuple[str, ...]:
        """Names of the service besides `localhost`, in lower case."""
        return tuple(name for part in self.hosts.split(",") if (name := part.strip().lower()))

    @property
    def collection_places(self) -> Mapping[str, str]:
        """Places of the indices besides the default one, by name."""
        return collections(self.collections)

    @property
    def webhooks_allowed(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """Networks that webhooks may call besides public addresses."""
        return networks(self.webhook_networks)

    def secrets(self) -> Iterator[SecretStr]:
        """Yield every secret that is set: keys, and addresses with a password."""
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, SecretStr):
                yield value
        for provider in PROVIDERS:
            # one that cannot be read cannot be written either
            with suppress(ConfigurationError):
                if key := self.credentials(provider).api_key:
                    yield key

    @property
    def own_models(self) -> tuple[str, ...]:
        """Models that questions use by default, a paid embedder included: those that a new tenant may use."""
        embedder = self.embedder or ""
        paid = (embedder,) if embedder.partition(":")[0] == _PAID else ()
        return (self.model, *paid)

    @property
    def retention(self) -> float:
        """Retention of a finished job's record, in seconds."""
        return self.retention_days * 24 * 3_600

    @property
    def cache_folder(self) -> Path | None:
        """Folder of files that can be made again; ``None``: none are kept."""
        if self.cache is not None:
            return None if off(self.cache) is None else Path(self.cache).expanduser()
        return Path(self.xdg_cache or "~/.cache").expanduser() / "posology"

    @property
    def embedding(self) -> Options:
        """Options of the encoders."""
        from posology.index.embedders.options import Options

        folder = self.cache_folder
        return Options(
            precision=self.embedder_precision,
            backend=self.embedder_backend,
            cache=None if folder is None else folder / "onnx",
            threads=self.embedder_threads,
            device=self.embedder_device,
        )

    @property
    def reading(self) -> ReaderOptions:
        """Options of the offline reader."""
        return ReaderOptions(
            method=self.reader, tokens=self.reader_tokens, seconds=self.compression_seconds
        )

    @property
    def kept_versions(self) -> timedelta:
        """Time for which a replaced index version stays readable."""
        return timedelta(days=self.keep_versions)

    @property
    def redis(self) -> str:
        """Address of Redis for services, with its password."""
        return self.redis_url.get_secret_value() if self.redis_url else DEFAULT_REDIS


def config_files() -> tuple[File, ...]:
    """Read the configuration files, the most important first.

    Raises:
        ConfigurationError: a file cannot be read, has an unknown key, or a secret.
    """
    return read(config_choice(), known_keys())


def file_values() -> Mapping[str, Any]:
    """Return the values of all configuration files by environment variable.

    Raises:
        ConfigurationError: as for :func:`config_files`.
    """
    return ChainMap(*(dict(file.values) for file in config_files()))


def known_keys() -> Mapping[str, Key]:
    """Return the keys of configuration files by name."""
    return keys_of(Settings.model_fields)


def load_settings() -> Settings:
    """Read the configuration.

    An empty variable counts as not set.

    Raises:
        ConfigurationError: a value is invalid; the error names the variable, or the file and key, never the value.
    """
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        variable = ".".join(map(str, first["loc"]))
        where = _where(variable)
        raise ConfigurationError(f"{where}: {first['msg']}") from None


def _where(variable: str) -> str:
    """Return where an invalid value stands."""
    if read_variable(variable) is None:
        names = {key.variable: name for name, key in known_keys().items()}
        for file in config_files():
            if variable in file.values:
                return f"{file.path}: {names[variable]}"
    return variable
