"""Settings: the only reader of what configures Posology."""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
)
from pydantic_core import PydanticCustomError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from orchestrator.configuration.files import OFF, File, Key, read
from posology.errors import ConfigurationError, InvalidQuery
from posology.llm.providers.table import PROVIDERS

if TYPE_CHECKING:
    from orchestrator.configuration.keys import Keys
    from posology.index.embedders.options import Options
from posology.index.search.folding import Fold

DEFAULT_MODEL = "offline:extractive"
DEFAULT_POLICY = "router"
#: of the compressors that call no model, it keeps the most relevant text in the fewest tokens on unseen documents;
#: see ``docs/concepts/compressors.md``
DEFAULT_COMPRESSOR = "pruner"
#: address of Redis for workers and the API without ``POSOLOGY_REDIS_URL``
DEFAULT_REDIS = "redis://127.0.0.1:6379/0"
#: bounds on output tokens of one call; no existing model writes more
MIN_TOKENS, MAX_TOKENS = 64, 200_000


class Auth(StrEnum):
    """How the API finds the tenant of a request."""

    #: the `X-Posology-Tenant` header is believed
    OPEN = "open"
    #: the API key names the tenant
    KEYS = "keys"


class LogFormat(StrEnum):
    """Format of log lines."""

    #: text on a terminal, else JSON
    AUTO = "auto"
    JSON = "json"
    CONSOLE = "console"


class LogLevel(StrEnum):
    """Lowest level of log lines."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _known(policy: str) -> str:
    if policy == DEFAULT_POLICY:
        # commands that decide nothing need not wait for NumPy
        return policy
    from policies.specs import parse

    try:
        parse(policy)
    except InvalidQuery as error:
        raise PydanticCustomError("policy", "{said}", {"said": error.message}) from None
    return policy


def _mapping(text: str) -> str:
    models(text)
    return text


def models(text: str) -> Mapping[str, str]:
    """Read the models of compressors, by the compressor's name: ``provence=DIR,summarization=DIR``.

    Raises:
        PydanticCustomError: the text is not such a list.
    """
    found: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, model = (part.strip() for part in item.partition("="))
        if not equals or not name or not model or name in found:
            raise PydanticCustomError(
                "models",
                "write NAME=MODEL, each name once, separated by commas: {item}",
                {"item": item},
            )
        found[name] = model
    return found


def _off(value: object) -> object:
    # an empty variable counts as not set, so there must be a word for "do not count it"
    return None if isinstance(value, str) and value.strip().lower() in ("off", "none") else value


@dataclass(frozen=True, kw_only=True, slots=True)
class Credentials:
    """How to reach a provider; ``None``: its variable is not set."""

    api_key: SecretStr | None = None
    base_url: str | None = None


def _read_credentials() -> Mapping[str, Credentials]:
    found = {}
    from_files = file_values()
    for row in PROVIDERS.values():
        key, url = (_variable(name) for name in (row.key_variable, row.url_variable))
        if url is None and row.url_variable:
            url = from_files.get(row.url_variable)
        found[row.name] = Credentials(api_key=SecretStr(key) if key else None, base_url=url)
    return found


def config_choice() -> str | None:
    """Return ``POSOLOGY_CONFIG``: one configuration file, or ``off``; ``None``: the usual ones."""
    return _variable("POSOLOGY_CONFIG")


def key_providers() -> tuple[str, ...]:
    """Return the providers that take an API key."""
    return tuple(row.name for row in PROVIDERS.values() if row.key_variable)


def keys() -> Keys | None:
    """Return the stored keys of the user; ``None``: they are not to be read."""
    from orchestrator.configuration.files import user_folder
    from orchestrator.configuration.keys import Keys

    return None if config_choice() == OFF else Keys(user_folder())


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
    found = {}
    for name, field in Settings.model_fields.items():
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


def _variable(name: str | None) -> str | None:
    # an empty variable counts as not set
    return os.environ.get(name) or None if name else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Where the value of a setting comes from."""

    #: name in configuration files
    name: str
    variable: str
    #: text of the value; ``None``: not set, or a secret
    value: str | None
    secret: bool
    #: ``default``, ``environment``, ``stored key``, ``folder`` or the path of a file
    source: str


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
    found = []
    for name, key in known_keys().items():
        names = [key.variable]
        if name in Settings.model_fields:
            value = getattr(settings, name)
            alias = Settings.model_fields[name].validation_alias
            if isinstance(alias, AliasChoices):
                names = [choice for choice in alias.choices if isinstance(choice, str)]
        elif key.variable in by_url:
            value = settings.credentials(by_url[key.variable]).base_url
        else:
            value = None
        source = "default"
        if any(map(_variable, names)):
            source = "environment"
        elif file := next((file for file in files if key.variable in file.values), None):
            source = str(file.path)
        elif by_key.get(key.variable) in places:
            source = f"stored key ({places[by_key[key.variable]]})"
        elif name == "index" and value is not None:
            source = "folder"
        text = None if value is None or key.secret else str(value)
        found.append(
            Origin(name=name, variable=key.variable, value=text, secret=key.secret, source=source)
        )
    return tuple(found)


class Settings(BaseSettings):
    """The configuration, read once. Everything else in the system takes arguments.

    Environment variables come before ``posology.toml`` in the current folder, and that before the user's.
    The providers' variables keep the names that their SDKs use, and stand in the table of providers;
    Posology's own start with ``POSOLOGY_``. A field's docstring is its text in the settings reference: noun phrase, unit, default.
    """

    model_config = SettingsConfigDict(
        frozen=True, extra="ignore", env_ignore_empty=True, use_attribute_docstrings=True
    )

    aws_access_key_id: SecretStr | None = Field(default=None, alias="AWS_ACCESS_KEY_ID")
    """Access key of the object storage that holds the index. Default: the role of the machine or container."""
    aws_secret_access_key: SecretStr | None = Field(default=None, alias="AWS_SECRET_ACCESS_KEY")
    """Secret of that access key. Default: the role of the machine or container."""
    aws_session_token: SecretStr | None = Field(default=None, alias="AWS_SESSION_TOKEN")
    """Session token of a temporary access key. Default: none."""
    aws_region: str | None = Field(
        default=None,
        alias="AWS_REGION",
        validation_alias=AliasChoices("AWS_REGION", "AWS_DEFAULT_REGION"),
    )
    """Region of the object storage. Default: `us-east-1`."""
    s3_endpoint: str | None = Field(
        default=None,
        alias="POSOLOGY_S3_ENDPOINT",
        validation_alias=AliasChoices(
            "POSOLOGY_S3_ENDPOINT", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"
        ),
    )
    """Address of an S3 server that is not Amazon's. Default: Amazon's."""

    index: str | None = Field(default=None, alias="POSOLOGY_INDEX")
    """Folder or address (`s3://…`) of the index. Default: `./index` if it is one; else commands need `--index`."""
    model: str = Field(default=DEFAULT_MODEL, alias="POSOLOGY_MODEL")
    """Model that answers, as `provider:name`. Default: `offline:extractive`."""
    prices: str | None = Field(default=None, alias="POSOLOGY_PRICES")
    """File of prices that the packaged table lacks or has wrong. Default: none."""
    tiktoken_files: str | None = Field(default=None, alias="TIKTOKEN_CACHE_DIR")
    """Folder where `tiktoken` keeps its files. Default: tiktoken's own."""
    embedder: str | None = Field(default=None, alias="POSOLOGY_EMBEDDER")
    """Encoder of passages and questions: a sentence-transformers name or folder, `medcpt`, or `openai:MODEL`.
    Default: the packaged MiniLM."""
    embedder_backend: Literal["auto", "torch", "onnx"] = Field(
        default="auto", alias="POSOLOGY_EMBEDDER_BACKEND"
    )
    """Library that runs sentence-transformers encoders. `auto` is ONNX with int8 if the encoder has a faithful
    export, else torch. Default: `auto`."""
    embedder_precision: Literal["auto", "float32", "bfloat16", "int8"] = Field(
        default="auto", alias="POSOLOGY_EMBEDDER_PRECISION"
    )
    """Arithmetic of encoders: float32 or bfloat16 with torch, float32 or int8 with ONNX. Default: `auto`."""
    embedder_threads: int | None = Field(default=None, ge=1, alias="POSOLOGY_EMBEDDER_THREADS")
    """Threads of one forward pass with ONNX. Default: one for each core."""
    embedder_device: str = Field(default="cpu", alias="POSOLOGY_EMBEDDER_DEVICE")
    """Torch device of encoders, or `auto` for an accelerator if there is one. Default: `cpu`."""
    cache: str | None = Field(default=None, alias="POSOLOGY_CACHE")
    """Folder of files that can be made again, such as exported encoders; `off` keeps none.
    Default: `posology` in the folder of `XDG_CACHE_HOME`."""
    xdg_cache: str | None = Field(default=None, alias="XDG_CACHE_HOME")
    """Cache folder of the user's programs. Default: `~/.cache`."""
    self_information: str | None = Field(default=None, alias="POSOLOGY_SELF_INFORMATION")
    """Causal language model of Hugging Face, by name or folder, that measures the self-information of phrases at
    ingest. Default: an n-gram model of the ingested literature."""
    token_codes: bool = Field(default=True, alias="POSOLOGY_TOKEN_CODES")
    """Whether ingest stores compressed token vectors, which the pruner reads. They make an index of abstracts more
    than four times as large. Default: true."""
    keep_versions: float = Field(
        default=30, ge=0, le=36_500, allow_inf_nan=False, alias="POSOLOGY_KEEP_VERSIONS"
    )
    """Days for which a replaced index version stays readable, so that answers can be replayed; at least an hour.
    Default: 30."""
    policy: Annotated[str, AfterValidator(_known)] = Field(
        default=DEFAULT_POLICY, alias="POSOLOGY_POLICY"
    )
    """Policy that decides how a question is answered, with its settings. Default: `router`."""
    qtable: str | None = Field(default=None, alias="POSOLOGY_QTABLE")
    """File of a Q-table made by `posology policy train`. Default: none; policies work without one."""
    compressor: str = Field(default=DEFAULT_COMPRESSOR, alias="POSOLOGY_COMPRESSOR")
    """Compressor of the strategy `compressed`. Default: `pruner`."""
    compressor_model: Annotated[str, AfterValidator(_mapping)] = Field(
        default="", alias="POSOLOGY_COMPRESSOR_MODEL"
    )
    """Models that compressors run, as hub names or folders by compressor: `provence=DIR,summarization=DIR`.
    Default: none."""
    compression_seconds: float = Field(
        default=60.0, gt=0, allow_inf_nan=False, alias="POSOLOGY_COMPRESSION_SECONDS"
    )
    """Maximum predicted seconds of one compression; a question that needs more is refused. Default: 60."""
    reranker: str | None = Field(default=None, alias="POSOLOGY_RERANKER")
    """Reranker of the best passages: `medcpt`, `pruner`, `nsp:MODEL` or `provence:MODEL`. Default: none."""
    fold: Fold = Field(default=Fold.WORKS, alias="POSOLOGY_FOLD")
    """Records that count as one work: `works` (copies; a preprint and its article), `trials` (also the publications
    of one registered trial) or `off`. Default: `works`."""
    expand: str | None = Field(default=None, alias="POSOLOGY_EXPAND")
    """Query expansion: `abbreviations`, `mesh:FILE` with NLM's descriptors, or both separated by a comma.
    Default: none, which found more (decision 0025)."""
    memory: str | None = Field(default=None, alias="POSOLOGY_MEMORY")
    """File that stores compressor results permanently. Default: `memory.sqlite` in the folder of `POSOLOGY_HOME`."""
    machine_dollars_per_hour: Annotated[Decimal | None, BeforeValidator(_off)] = Field(
        default=Decimal("0.10"),
        ge=0,
        le=1_000,
        allow_inf_nan=False,
        alias="POSOLOGY_MACHINE_DOLLARS_PER_HOUR",
    )
    """Dollars per hour of the machine that compresses, for net savings; `off` leaves its time out.
    Default: 0.10, about the rent of a general-purpose machine of two cores."""
    machine_utilisation: float = Field(
        default=0.5, gt=0, le=1, alias="POSOLOGY_MACHINE_UTILISATION"
    )
    """Fraction of time the machine is busy (0 < x ≤ 1); idle time is paid for, too (TCRA-LLM, section 5.3).
    Default: 0.5."""
    call_timeout: float = Field(default=60.0, gt=0, alias="POSOLOGY_CALL_TIMEOUT")
    """Timeout of one attempt at a model call, in seconds. Default: 60."""
    call_deadline: float = Field(default=180.0, gt=0, alias="POSOLOGY_CALL_DEADLINE")
    """Timeout of a model call with all its attempts and waits, in seconds. Default: 180."""
    attempts: int = Field(default=4, ge=1, le=20, alias="POSOLOGY_ATTEMPTS")
    """Maximum attempts at a model call, including the first. Default: 4."""
    concurrency: int = Field(default=16, ge=1, alias="POSOLOGY_CONCURRENCY")
    """Maximum concurrent model calls for each provider. Default: 16."""
    max_tokens: int | None = Field(
        default=None, ge=MIN_TOKENS, le=MAX_TOKENS, alias="POSOLOGY_MAX_TOKENS"
    )
    """Maximum output tokens of one call, reasoning included. Default: the bound of each stage."""
    openai_legacy_max_tokens: bool = Field(default=False, alias="POSOLOGY_OPENAI_LEGACY_MAX_TOKENS")
    """Whether to send `max_tokens` instead of `max_completion_tokens`, for servers that know only the former.
    Default: false."""
    native_schema: bool = Field(default=True, alias="POSOLOGY_NATIVE_SCHEMA")
    """Whether to send the JSON schema of a reply. Turn it off for servers and models that reject it; the prompt and
    one repair then replace it. Default: true."""
    redis_url: SecretStr | None = Field(default=None, alias="POSOLOGY_REDIS_URL")
    """Address of the Redis that stores jobs, with its password. Default: the stack in the folder of
    `POSOLOGY_HOME`; for services `redis://127.0.0.1:6379/0`."""
    home: str = Field(default=".posology", alias="POSOLOGY_HOME")
    """Data folder of the embedded stack. Default: `.posology`."""
    retention_days: float = Field(
        default=7.0, gt=0, le=3_650, allow_inf_nan=False, alias="POSOLOGY_RETENTION_DAYS"
    )
    """Days for which the record of a finished job is kept. Default: 7."""
    max_queued: int = Field(default=200_000, ge=1, le=10**9, alias="POSOLOGY_MAX_QUEUED")
    """Maximum waiting jobs of a tenant without a limit of its own. Default: 200000."""
    max_stored: int = Field(default=1_024, ge=1, le=10**9, alias="POSOLOGY_MAX_STORED")
    """Maximum MiB of Redis that the jobs of a tenant without a limit of its own occupy, until their records expire.
    Default: 1024."""
    redis_memory: int | None = Field(default=None, ge=64, le=10**9, alias="POSOLOGY_REDIS_MEMORY")
    """Maximum memory of the embedded Redis, in MiB; a full Redis refuses writes and keeps its data. Default: half of the
    machine's memory."""
    tenant: str = Field(default="default", alias="POSOLOGY_TENANT")
    """Tenant of commands without `--tenant`. Default: `default`."""
    auth: Auth | None = Field(default=None, alias="POSOLOGY_AUTH")
    """How the API finds the tenant of a request: `open` believes the `X-Posology-Tenant` header, `keys` asks for an
    API key. Default: open, and served on this machine only."""
    hosts: str = Field(default="", alias="POSOLOGY_HOSTS")
    """Host names under which an API without keys is reached, separated by commas, besides `localhost` and IP addresses.
    Default: none."""
    metrics_key: SecretStr | None = Field(default=None, min_length=16, alias="POSOLOGY_METRICS_KEY")
    """Key for reading the metrics of all tenants if the API asks for keys; at least 16 characters.
    Default: none; metrics are then closed."""
    shutdown_grace: float = Field(
        default=60.0, ge=0, allow_inf_nan=False, alias="POSOLOGY_SHUTDOWN_GRACE"
    )
    """Graceful-shutdown timeout of a worker, in seconds; unfinished work is requeued. Default: 60."""
    lease: float = Field(default=15.0, ge=2, allow_inf_nan=False, alias="POSOLOGY_LEASE")
    """Seconds without a heartbeat before a worker is considered dead. Default: 15."""
    worker_concurrency: int = Field(default=32, ge=1, alias="POSOLOGY_WORKER_CONCURRENCY")
    """Maximum concurrent jobs and partitions in each worker process. Default: 32."""

    log_format: Annotated[LogFormat, BeforeValidator(_lower)] = Field(
        default=LogFormat.AUTO, alias="POSOLOGY_LOG_FORMAT"
    )
    """Format of log lines: `json`, `console` (text), or `auto`, which is text on a terminal and JSON elsewhere.
    Default: `auto`."""
    log_level: Annotated[LogLevel, BeforeValidator(_lower)] = Field(
        default=LogLevel.INFO, alias="POSOLOGY_LOG_LEVEL"
    )
    """Lowest level of log lines: `debug`, `info`, `warning` or `error`. Default: `info`."""
    log_questions: bool = Field(default=False, alias="POSOLOGY_LOG_QUESTIONS")
    """Whether log lines may contain the text of questions, and the messages of internal errors, which may quote them.
    Default: false."""

    #: read once, with the fields; the table of providers names the variables
    _credentials: Mapping[str, Credentials] = PrivateAttr(default_factory=_read_credentials)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic's signature
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the same
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources of values, the most important first."""
        files = (InitSettingsSource(settings_cls, dict(file.values)) for file in config_files())
        usual = InitSettingsSource(
            settings_cls, {"POSOLOGY_INDEX": index} if (index := index_here()) else {}
        )
        return (init_settings, env_settings, *files, usual)

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

    def environment(self) -> Mapping[str, str]:
        """Return these values and the stored keys as environment variables, for processes of this one.

        A process started with them reads no file, so that it has the same values wherever it runs.

        Raises:
            ConfigurationError: a stored key cannot be read.
        """
        found = {"POSOLOGY_CONFIG": OFF}
        for name in self.model_fields_set:
            value, field = getattr(self, name), type(self).model_fields[name]
            if value is None and field.default is None:
                continue
            text = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
            found[field.alias or name] = "off" if value is None else text
        for row in PROVIDERS.values():
            known = self.credentials(row.name)
            if row.key_variable and known.api_key:
                found[row.key_variable] = known.api_key.get_secret_value()
            if row.url_variable and known.base_url:
                found[row.url_variable] = known.base_url
        return found

    @property
    def known_hosts(self) -> tuple[str, ...]:
        """Names of the service besides `localhost`, in lower case."""
        return tuple(name for part in self.hosts.split(",") if (name := part.strip().lower()))

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
    def retention(self) -> float:
        """Retention of a finished job's record, in seconds."""
        return self.retention_days * 24 * 3_600

    @property
    def cache_folder(self) -> Path | None:
        """Folder of files that can be made again; ``None``: none are kept."""
        if self.cache is not None:
            return None if _off(self.cache) is None else Path(self.cache).expanduser()
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
    def kept_versions(self) -> timedelta:
        """Time for which a replaced index version stays readable."""
        return timedelta(days=self.keep_versions)

    @property
    def redis(self) -> str:
        """Address of Redis for services, with its password."""
        return self.redis_url.get_secret_value() if self.redis_url else DEFAULT_REDIS


def index_here() -> str | None:
    """Return the index in the current folder, ``index``; ``None``: there is none."""
    return "index" if Path("index", "passages.lance").is_dir() else None


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
    if _variable(variable) is None:
        names = {key.variable: name for name, key in known_keys().items()}
        for file in config_files():
            if variable in file.values:
                return f"{file.path}: {names[variable]}"
    return variable
