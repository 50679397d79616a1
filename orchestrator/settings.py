"""The only reader of the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
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
    SecretStr,
    ValidationError,
)
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, SettingsConfigDict

from posology.errors import ConfigurationError, InvalidQuery

if TYPE_CHECKING:
    from posology.index.embedders.options import Options
from posology.index.search.folding import Fold

DEFAULT_MODEL = "offline:extractive"
DEFAULT_POLICY = "router"
#: on documents that it has not seen it keeps more of what bears on the question in fewer tokens than any other
#: that asks no model, see ``docs/compressors.md``
DEFAULT_COMPRESSOR = "pruner"
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
    # products of a few hundred rows are done before a second thread has woken, and it spins after each
    "OPENBLAS_NUM_THREADS": "1",
}


class Auth(StrEnum):
    """How the API knows whose a request is."""

    #: whoever reaches it is believed
    OPEN = "open"
    #: by the API key
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
    """The models of compressors, by the compressor's name, as ``provence=DIR,summarization=DIR`` says.

    Raises:
        PydanticCustomError: it is no such list.
    """
    found: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, model = (part.strip() for part in item.partition("="))
        if not equals or not name or not model or name in found:
            raise PydanticCustomError(
                "models",
                "write NAME=MODEL, each name once, parted by commas: {item}",
                {"item": item},
            )
        found[name] = model
    return found


def _off(value: object) -> object:
    # an empty variable counts as not set, so there must be a word for "do not count it"
    return None if isinstance(value, str) and value.strip().lower() in ("off", "none") else value


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
    #: for an index on object storage; where they are ``None``, the machine's or container's own role is asked
    aws_access_key_id: SecretStr | None = Field(default=None, alias="AWS_ACCESS_KEY_ID")
    aws_secret_access_key: SecretStr | None = Field(default=None, alias="AWS_SECRET_ACCESS_KEY")
    aws_session_token: SecretStr | None = Field(default=None, alias="AWS_SESSION_TOKEN")
    aws_region: str | None = Field(
        default=None,
        alias="AWS_REGION",
        validation_alias=AliasChoices("AWS_REGION", "AWS_DEFAULT_REGION"),
    )
    #: address of a server other than Amazon's that speaks S3
    s3_endpoint: str | None = Field(
        default=None,
        alias="POSOLOGY_S3_ENDPOINT",
        validation_alias=AliasChoices(
            "POSOLOGY_S3_ENDPOINT", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"
        ),
    )

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
    #: what runs the forward passes of sentence-transformers' encoders: ``auto`` is ONNX with int8 where the
    #: encoder has a faithful export, else torch
    embedder_backend: Literal["auto", "torch", "onnx"] = Field(
        default="auto", alias="POSOLOGY_EMBEDDER_BACKEND"
    )
    #: their arithmetic: torch has float32 and bfloat16, ONNX float32 and int8
    embedder_precision: Literal["auto", "float32", "bfloat16", "int8"] = Field(
        default="auto", alias="POSOLOGY_EMBEDDER_PRECISION"
    )
    #: threads of a forward pass of ONNX; ``None``: one a core
    embedder_threads: int | None = Field(default=None, ge=1, alias="POSOLOGY_EMBEDDER_THREADS")
    #: torch's name of the device that encoders run on, or ``auto``: an accelerator if there is one
    embedder_device: str = Field(default="cpu", alias="POSOLOGY_EMBEDDER_DEVICE")
    #: the folder of what can be made again, such as exported encoders; ``None``: ``posology`` in ``xdg_cache``;
    #: ``off``: nothing is kept
    cache: str | None = Field(default=None, alias="POSOLOGY_CACHE")
    #: where programs keep such things; ``None``: ``~/.cache``
    xdg_cache: str | None = Field(default=None, alias="XDG_CACHE_HOME")
    #: a causal language model of Hugging Face, by name or folder, that says at ingest what each phrase tells;
    #: ``None``: an n-gram model of the literature that is ingested
    self_information: str | None = Field(default=None, alias="POSOLOGY_SELF_INFORMATION")
    #: whether ingest keeps the vectors of tokens, compressed, which the pruner reads: they make an index of
    #: abstracts more than four times as large
    token_codes: bool = Field(default=True, alias="POSOLOGY_TOKEN_CODES")
    #: days for which a version of the index can be read after it was replaced, so that answers can be replayed;
    #: at least an hour
    keep_versions: float = Field(
        default=30, ge=0, le=36_500, allow_inf_nan=False, alias="POSOLOGY_KEEP_VERSIONS"
    )
    #: what decides how a question is answered, see ``docs/policies.md``
    policy: Annotated[str, AfterValidator(_known)] = Field(
        default=DEFAULT_POLICY, alias="POSOLOGY_POLICY"
    )
    #: the file of a Q-table, made by ``posology policy train``; ``None``: policies do without
    qtable: str | None = Field(default=None, alias="POSOLOGY_QTABLE")
    #: what compresses for compressed RAG, see :data:`strategies.compression.COMPRESSORS`
    compressor: str = Field(default=DEFAULT_COMPRESSOR, alias="POSOLOGY_COMPRESSOR")
    #: hub names or folders of the models that compressors run, by the compressor's name:
    #: ``provence=DIR,summarization=DIR``
    compressor_model: Annotated[str, AfterValidator(_mapping)] = Field(
        default="", alias="POSOLOGY_COMPRESSOR_MODEL"
    )
    #: what orders the best passages anew, see :mod:`orchestrator.retrieval`: ``medcpt``, ``pruner``,
    #: ``nsp:MODEL`` or ``provence:MODEL``; ``None``: nothing does
    reranker: str | None = Field(default=None, alias="POSOLOGY_RERANKER")
    #: which records count as one work: ``works`` (copies, a preprint and its article), ``trials`` (the
    #: publications of one registered trial, too) or ``off``
    fold: Fold = Field(default=Fold.WORKS, alias="POSOLOGY_FOLD")
    #: other words that are searched for beside a question's own: ``abbreviations``, or ``mesh:FILE`` with NLM's
    #: descriptors, or both behind a comma; ``None``: none, which found more (docs/decisions/0025-evidence.md)
    expand: str | None = Field(default=None, alias="POSOLOGY_EXPAND")
    #: the file that keeps for good what compressors computed; ``None``: one in ``home``
    memory: str | None = Field(default=None, alias="POSOLOGY_MEMORY")
    #: What the machine costs that compresses, for the net saving; ``None`` (``off``): its time is not counted.
    #: By default about what a general-purpose machine of two cores is let for.
    machine_dollars_per_hour: Annotated[Decimal | None, BeforeValidator(_off)] = Field(
        default=Decimal("0.10"),
        ge=0,
        le=1_000,
        allow_inf_nan=False,
        alias="POSOLOGY_MACHINE_DOLLARS_PER_HOUR",
    )
    #: share of its hours that the machine works at all: the idle rest is paid for, too (TCRA-LLM, section 5.3)
    machine_utilisation: float = Field(
        default=0.5, gt=0, le=1, alias="POSOLOGY_MACHINE_UTILISATION"
    )
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
    def cache_folder(self) -> Path | None:
        """Where what can be made again is kept; ``None``: nowhere."""
        if self.cache is not None:
            return None if _off(self.cache) is None else Path(self.cache).expanduser()
        return Path(self.xdg_cache or "~/.cache").expanduser() / "posology"

    @property
    def embedding(self) -> Options:
        """How encoders compute."""
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
        """For how long a version of the index can be read after it was replaced."""
        return timedelta(days=self.keep_versions)

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
