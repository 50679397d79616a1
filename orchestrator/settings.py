"""The only reader of the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from posology.errors import ConfigurationError

DEFAULT_MODEL = "offline:extractive"
#: where workers and the API look for Redis, unless ``POSOLOGY_REDIS_URL`` says so
DEFAULT_REDIS = "redis://127.0.0.1:6379/0"
#: output tokens of one call; models that exist write fewer than the most
MIN_TOKENS, MAX_TOKENS = 64, 200_000
#: what libraries read from the environment when they are first imported, where the user says nothing
_FOR_LIBRARIES = {
    # progress bars and warnings would stand in the middle of an answer
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    # it warns of what it handles itself, once for every file
    "LANCEDB_LOG": "error",
    # Rust threads inside worker threads only get in each other's way
    "TOKENIZERS_PARALLELISM": "false",
    # idle OpenMP threads spin by default, and starve other processes on the same cores
    "OMP_WAIT_POLICY": "PASSIVE",
}


class Auth(StrEnum):
    """How the API knows whose a request is."""

    #: whoever reaches it is believed
    OPEN = "open"
    #: by the API key
    KEYS = "keys"


class Settings(BaseSettings):
    """What the environment says. Everything else in the system takes arguments.

    The providers' variables keep the names that their SDKs use; Posology's own start with
    ``POSOLOGY_``.
    """

    model_config = SettingsConfigDict(frozen=True, extra="ignore", env_ignore_empty=True)

    openai_api_key: SecretStr | None = Field(default=None, alias="OPENAI_API_KEY")
    openai_base_url: str | None = Field(default=None, alias="OPENAI_BASE_URL")
    anthropic_api_key: SecretStr | None = Field(default=None, alias="ANTHROPIC_API_KEY")
    anthropic_base_url: str | None = Field(default=None, alias="ANTHROPIC_BASE_URL")

    #: where the index is, unless a command says so: a folder, or an address such as ``s3://…``
    index: str | None = Field(default=None, alias="POSOLOGY_INDEX")
    #: ``provider:name``
    model: str = Field(default=DEFAULT_MODEL, alias="POSOLOGY_MODEL")
    #: the file of prices that the packaged table lacks or has wrong, see ``docs/prices.md``
    prices: str | None = Field(default=None, alias="POSOLOGY_PRICES")
    #: where ``tiktoken`` keeps its files; ``None``: where it does by default
    tiktoken_files: str | None = Field(default=None, alias="TIKTOKEN_CACHE_DIR")
    #: a sentence-transformers name or folder; ``None`` is the packaged MiniLM
    embedder: str | None = Field(default=None, alias="POSOLOGY_EMBEDDER")
    #: seconds for one attempt at a model call
    call_timeout: float = Field(default=60.0, gt=0, alias="POSOLOGY_CALL_TIMEOUT")
    #: seconds for a model call with all of its attempts and waits
    call_deadline: float = Field(default=180.0, gt=0, alias="POSOLOGY_CALL_DEADLINE")
    #: attempts at a model call, the first included
    attempts: int = Field(default=4, ge=1, le=20, alias="POSOLOGY_ATTEMPTS")
    #: model calls under way at once, for each provider
    concurrency: int = Field(default=16, ge=1, alias="POSOLOGY_CONCURRENCY")
    #: bound on output tokens of one call, reasoning included; ``None``: each stage's own
    max_tokens: int | None = Field(
        default=None, ge=MIN_TOKENS, le=MAX_TOKENS, alias="POSOLOGY_MAX_TOKENS"
    )
    #: for servers that know ``max_tokens`` and not ``max_completion_tokens``
    openai_legacy_max_tokens: bool = Field(default=False, alias="POSOLOGY_OPENAI_LEGACY_MAX_TOKENS")
    #: whether the schema of a reply is sent; off for servers and models that refuse it, where the
    #: prompt and one repair have to do
    native_schema: bool = Field(default=True, alias="POSOLOGY_NATIVE_SCHEMA")
    #: where jobs are kept; ``None``: on the stack that runs on ``home``
    redis_url: SecretStr | None = Field(default=None, alias="POSOLOGY_REDIS_URL")
    #: the data folder of the embedded stack
    home: str = Field(default=".posology", alias="POSOLOGY_HOME")
    #: days for which the record of a job is kept after its end
    retention_days: float = Field(
        default=7.0, gt=0, le=3_650, allow_inf_nan=False, alias="POSOLOGY_RETENTION_DAYS"
    )
    #: whose jobs they are, unless a command says so
    tenant: str = Field(default="default", alias="POSOLOGY_TENANT")
    #: how the API knows whose a request is; ``None``: it is open, and served on this machine alone
    auth: Auth | None = Field(default=None, alias="POSOLOGY_AUTH")
    #: the key with which the figures of all tenants are read where the API wants keys; ``None``: nobody reads
    #: them there
    metrics_key: SecretStr | None = Field(default=None, min_length=16, alias="POSOLOGY_METRICS_KEY")
    #: seconds that a worker has for what it is at when it is told to stop
    shutdown_grace: float = Field(
        default=60.0, ge=0, allow_inf_nan=False, alias="POSOLOGY_SHUTDOWN_GRACE"
    )
    #: seconds after which a worker that does not tell of itself counts as lost
    lease: float = Field(default=15.0, ge=2, allow_inf_nan=False, alias="POSOLOGY_LEASE")
    #: jobs and partitions under way at once, for each worker process
    worker_concurrency: int = Field(default=32, ge=1, alias="POSOLOGY_WORKER_CONCURRENCY")

    @property
    def retention(self) -> float:
        """Seconds for which the record of a job is kept after its end."""
        return self.retention_days * 24 * 3_600

    @property
    def redis(self) -> str:
        """The address that services use, with its password."""
        return self.redis_url.get_secret_value() if self.redis_url else DEFAULT_REDIS


def load_settings() -> Settings:
    """Read the environment.

    An empty variable counts as not set.

    Raises:
        ConfigurationError: naming the variable that is wrong, never its value.
    """
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ConfigurationError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def environment() -> Mapping[str, str]:
    """All of it, for processes that are started with nothing else."""
    return dict(os.environ)


def debug_wanted() -> bool:
    """Whether tracebacks are wanted, also where the other settings are unreadable."""
    return os.environ.get("POSOLOGY_DEBUG", "").lower() not in ("", "0", "false", "no", "off")


def prepare_libraries() -> None:
    """Set what libraries read from the environment; what the user has set stays.

    Call it before torch, transformers or LanceDB is imported.
    """
    for name, value in _FOR_LIBRARIES.items():
        os.environ.setdefault(name, value)
