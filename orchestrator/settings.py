"""Settings: the only reader of the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

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
from pydantic_settings import BaseSettings, SettingsConfigDict

from posology.errors import ConfigurationError, InvalidQuery
from posology.llm.providers.table import PROVIDERS

if TYPE_CHECKING:
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
#: environment variables that libraries read at import; the user's own values win
_FOR_LIBRARIES = {
    # progress bars and warnings would appear in the middle of an answer
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    # it warns about problems that it handles itself, once for every file
    "LANCEDB_LOG": "error",
    # Rust threads inside worker threads slow each other down
    "TOKENIZERS_PARALLELISM": "false",
    # idle OpenMP threads spin by default, and starve other processes on the same cores
    "OMP_WAIT_POLICY": "PASSIVE",
    # products of a few hundred rows end before a second thread wakes, and it spins after each
    "OPENBLAS_NUM_THREADS": "1",
}


class Auth(StrEnum):
    """How the API finds the tenant of a request."""

    #: the `X-Posology-Tenant` header is believed
    OPEN = "open"
    #: the API key names the tenant
    KEYS = "keys"


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
    for row in PROVIDERS.values():
        key, url = (_variable(name) for name in (row.key_variable, row.url_variable))
        found[row.name] = Credentials(api_key=SecretStr(key) if key else None, base_url=url)
    return found


def _variable(name: str | None) -> str | None:
    # an empty variable counts as not set
    return os.environ.get(name) or None if name else None


class Settings(BaseSettings):
    """The environment, read once. Everything else in the system takes arguments.

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
    """Folder or address (`s3://…`) of the index. Default: none; commands then need `--index`."""
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
    tenant: str = Field(default="default", alias="POSOLOGY_TENANT")
    """Tenant of commands without `--tenant`. Default: `default`."""
    auth: Auth | None = Field(default=None, alias="POSOLOGY_AUTH")
    """How the API finds the tenant of a request: `open` believes the `X-Posology-Tenant` header, `keys` asks for an
    API key. Default: open, and served on this machine only."""
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

    #: read once, with the fields; the table of providers names the variables
    _credentials: Mapping[str, Credentials] = PrivateAttr(default_factory=_read_credentials)

    def credentials(self, provider: str) -> Credentials:
        """Return the API key and base URL of a provider of the table."""
        return self._credentials[provider]

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


def load_settings() -> Settings:
    """Read the environment.

    An empty variable counts as not set.

    Raises:
        ConfigurationError: a variable is invalid; the error names the variable, never its value.
    """
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ConfigurationError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def environment() -> Mapping[str, str]:
    """Return the whole environment, for child processes."""
    return dict(os.environ)


def debug_wanted() -> bool:
    """Return whether tracebacks are wanted; works even if other settings are invalid."""
    return os.environ.get("POSOLOGY_DEBUG", "").lower() not in ("", "0", "false", "no", "off")


def prepare_libraries() -> None:
    """Set environment variables that libraries read; the user's own values stay.

    Call it before torch, transformers or LanceDB is imported.
    """
    for name, value in _FOR_LIBRARIES.items():
        os.environ.setdefault(name, value)
