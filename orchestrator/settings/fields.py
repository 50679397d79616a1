"""The settings: names, types, bounds, defaults and texts."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
)

from orchestrator.settings.values import (
    CLINICALTRIALS,
    DEFAULT_COMPRESSOR,
    DEFAULT_MODEL,
    DEFAULT_POLICY,
    EUROPEPMC,
    EUTILS,
    MAX_TOKENS,
    MIN_TOKENS,
    READ,
    UNPAYWALL,
    ZOTERO,
    ZOTERO_LOCAL,
    Auth,
    LogFormat,
    LogLevel,
    ReaderMethod,
    an_effort,
    known_networks,
    known_policy,
    lower,
    named_collections,
    named_models,
    off,
)
from posology.index.search.folding import Fold
from posology.types import QuoteForm, SupportMode


class Fields(BaseModel):
    """The fields of :class:`~orchestrator.settings.settings.Settings`, in the order of the settings reference.

    The providers' variables keep the names that their SDKs use, and stand in the table of providers;
    Posology's own start with ``POSOLOGY_``. A field's docstring is its text in the settings reference: noun phrase, unit, default.
    """

    # pydantic builds the schema of the subclass alone; the strings below fields are read by those who show them
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    index: str | None = Field(default=None, alias="POSOLOGY_INDEX")
    """Folder or address (`s3://…`) of the index. Default: `./index` if it is one; else commands need `--index`."""
    collections: Annotated[str, AfterValidator(named_collections)] = Field(
        default="", alias="POSOLOGY_COLLECTIONS"
    )
    """Further indices by name, e.g. `trials=/srv/trials,guidelines=s3://bucket/guidelines`, which `--index` and the field
    `collection` name; of tenants, those with a grant (`posology tenants set --collection`). Default: none."""
    model: str = Field(default=DEFAULT_MODEL, alias="POSOLOGY_MODEL")
    """Model that answers, as `provider:name`. Default: `offline:extractive`."""
    prices: str | None = Field(default=None, alias="POSOLOGY_PRICES")
    """File of prices that correct the packaged table or add to it. Default: none."""
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
    policy: Annotated[str, AfterValidator(known_policy)] = Field(
        default=DEFAULT_POLICY, alias="POSOLOGY_POLICY"
    )
    """Policy that decides how a question is answered, with its settings. Default: `router`."""
    qtable: str | None = Field(default=None, alias="POSOLOGY_QTABLE")
    """File of a Q-table made by `posology policy train`. Default: none; policies work without one."""
    prompts: str | None = Field(default=None, alias="POSOLOGY_PROMPTS")
    """Folder of templates of your own that replace packaged ones of the same name; read once, at the start.
    Default: none."""
    compressor: str = Field(default=DEFAULT_COMPRESSOR, alias="POSOLOGY_COMPRESSOR")
    """Compressor of the strategy `compressed`. Default: `pruner`."""
    compressor_model: Annotated[str, AfterValidator(named_models)] = Field(
        default="", alias="POSOLOGY_COMPRESSOR_MODEL"
    )
    """Models that compressors run, as hub names or folders by compressor: `provence=DIR,summarization=DIR`.
    Default: none."""
    compression_seconds: float = Field(
        default=60.0, gt=0, allow_inf_nan=False, alias="POSOLOGY_COMPRESSION_SECONDS"
    )
    """Maximum predicted seconds of one compression, and of one call of the offline reader; a question that needs more is
    refused. Default: 60."""
    reranker: str | None = Field(default=None, alias="POSOLOGY_RERANKER")
    """Reranker of the best passages: `medcpt`, `pruner`, `nsp:MODEL`, `provence` or `provence:MODEL`. Default: none."""
    calibration: str | None = Field(default=None, alias="POSOLOGY_CALIBRATION")
    """File of a calibration of preflight made by `posology policy calibrate`. Default: the packaged one alone."""
    fold: Fold = Field(default=Fold.WORKS, alias="POSOLOGY_FOLD")
    """Records that count as one work: `works` (copies; a preprint and its article), `trials` (also the publications
    of one registered trial) or `off`. Default: `works`."""
    expand: str | None = Field(default=None, alias="POSOLOGY_EXPAND")
    """Query expansion: `abbreviations`, `mesh:FILE` with NLM's descriptors, or both separated by a comma.
    Default: none, which retrieves more (decision 0025)."""
    reader: ReaderMethod = Field(default="cross-encoder", alias="POSOLOGY_READER")
    """Method of the offline reader: `cross-encoder`, a small trained model that reads the question with the text, or
    `late`, similarity of words in context, which gives more answers that miss the question. Default: cross-encoder."""
    reader_tokens: int = Field(default=READ, ge=1, le=1_000_000, alias="POSOLOGY_READER_TOKENS")
    """Maximum tokens of passages that the cross-encoder reads in one call, the text with the question's rarest words first;
    a larger number finds more in long texts and takes longer. Default: 2000."""
    memory: str | None = Field(default=None, alias="POSOLOGY_MEMORY")
    """File that stores compressor results permanently. Default: `memory.sqlite` in the folder of `POSOLOGY_HOME`."""
    machine_dollars_per_hour: Annotated[Decimal | None, BeforeValidator(off)] = Field(
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
    """Maximum silence of a model server in seconds, before its reply begins and between two pieces of it. Without streaming,
    timeout of one attempt as a whole. Default: 60."""
    call_deadline: float = Field(default=180.0, gt=0, alias="POSOLOGY_CALL_DEADLINE")
    """Timeout of a model call with all its attempts and waits, in seconds. Waits because of `POSOLOGY_CONCURRENCY` do
    not count. Default: 180."""
    min_tokens_per_second: Annotated[float | None, BeforeValidator(off)] = Field(
        default=None,
        ge=0.1,
        le=10_000,
        allow_inf_nan=False,
        alias="POSOLOGY_MIN_TOKENS_PER_SECOND",
    )
    """Slowest pace of a server in tokens per second: the time to the first token and `POSOLOGY_CALL_DEADLINE` grow by the
    call's maximum output tokens divided by it. Default: 2 for servers on this machine, off for others."""
    stream: bool = Field(default=True, alias="POSOLOGY_STREAM")
    """Whether to stream replies of servers other than the provider's own, and of calls with a bound of 2,048 output tokens
    or more. Turn it off for gateways that break streams. Default: true."""
    attempts: int = Field(default=4, ge=1, le=20, alias="POSOLOGY_ATTEMPTS")
    """Maximum attempts at a model call, including the first. Default: 4."""
    concurrency: int | None = Field(default=None, ge=1, alias="POSOLOGY_CONCURRENCY")
    """Maximum concurrent model calls of each process for each provider; fewer if the provider refuses some, or a local
    server has fewer slots. Default: 16, and up to 512 as far as a provider's replies say that its limits allow it; the
    slots of llama.cpp, and 1 for `ollama:`, `lmstudio:` and `gguf:`."""
    max_tokens: int | None = Field(
        default=None, ge=MIN_TOKENS, le=MAX_TOKENS, alias="POSOLOGY_MAX_TOKENS"
    )
    """Maximum output tokens of one call, reasoning included. Default: the bound of each stage."""
    effort: Annotated[str | None, AfterValidator(an_effort)] = Field(
        default=None, max_length=100, alias="POSOLOGY_EFFORT"
    )
    """Reasoning effort, as far as the model has levels: none, minimal, low, medium, high, xhigh or max; or by stage, such
    as `answer=medium,extract=none`. Default: low to answer and reduce, the model's lowest level to extract and rewrite."""
    tier: Literal["standard", "flex-then-standard", "flex"] = Field(
        default="standard", alias="POSOLOGY_TIER"
    )
    """Service tier of questions that name none: standard, flex-then-standard or flex; standard for models without it.
    Default: standard."""
    quotes: QuoteForm = Field(default="sentences", alias="POSOLOGY_QUOTES")
    """How a model names its evidence: `sentences`, by their numbers, whose words are shown from the source; or `copied`,
    word for word, which costs more tokens. Default: sentences."""
    support: SupportMode = Field(default="mark", alias="POSOLOGY_SUPPORT")
    """Treatment of sentences of an answer that their quotes do not support: `mark`; `repair` (one more call asks for a
    better answer); `drop` (left out of the answer); `model` (one more call judges them, and they are marked); or `off` (no
    check). Default: mark."""
    support_model: str | None = Field(default=None, alias="POSOLOGY_SUPPORT_MODEL")
    """Model that judges in the mode `model`, of the same provider as the one that answers. Default: the one that answers."""
    openai_legacy_max_tokens: bool = Field(default=False, alias="POSOLOGY_OPENAI_LEGACY_MAX_TOKENS")
    """Whether to send `max_tokens` instead of `max_completion_tokens`, for servers that know only the former.
    Default: false."""
    local_window: int | None = Field(
        default=None, ge=1_024, le=10_000_000, alias="POSOLOGY_LOCAL_WINDOW"
    )
    """Tokens of input and output together of models that are loaded for Posology (`ollama:` and `gguf:`). Default: 8,192;
    for Ollama what the Modelfile or the loaded model has, and never more than the model was trained to read."""
    local_idle: float = Field(
        default=10.0, gt=0, le=10_000, allow_inf_nan=False, alias="POSOLOGY_LOCAL_IDLE"
    )
    """Minutes without a call after which the llama.cpp of `gguf:` models ends and frees its memory. Default: 10."""
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
    console_key: SecretStr | None = Field(default=None, min_length=24, alias="POSOLOGY_CONSOLE_KEY")
    """Operator's key of the console if the API asks for keys; at least 24 characters. It shows all tenants, and changes their
    limits and keys. Default: none; the pages of operators are then closed."""
    console_secure: bool | None = Field(default=None, alias="POSOLOGY_CONSOLE_SECURE")
    """Whether browsers send the console's cookie over TLS alone. Default: true if the API asks for keys and is not reached as
    `localhost`, whatever a proxy says; else where the request came by TLS."""
    oidc_issuer: str | None = Field(default=None, alias="POSOLOGY_OIDC_ISSUER")
    """Issuer of an OpenID Connect provider, e.g. `https://sso.example.org/realms/one`, for the console's sign-in and access
    tokens. Default: none; API keys alone."""
    oidc_client_id: str | None = Field(default=None, alias="POSOLOGY_OIDC_CLIENT_ID")
    """Client id of this service at the OpenID Connect provider. Default: none."""
    oidc_client_secret: SecretStr | None = Field(default=None, alias="POSOLOGY_OIDC_CLIENT_SECRET")
    """Secret of that client. Default: none."""
    oidc_audience: str | None = Field(default=None, alias="POSOLOGY_OIDC_AUDIENCE")
    """Audience that access tokens for the API must name. Default: `POSOLOGY_OIDC_CLIENT_ID`."""
    oidc_groups: str = Field(default="", alias="POSOLOGY_OIDC_GROUPS")
    """Tenants of the provider's groups, as `group=tenant` separated by commas. Default: none."""
    oidc_operators: str = Field(default="", alias="POSOLOGY_OIDC_OPERATORS")
    """Groups of the provider that are operators of the console, separated by commas. Default: none."""
    oidc_claim: str = Field(default="groups", min_length=1, alias="POSOLOGY_OIDC_CLAIM")
    """Claim of ID tokens and access tokens that lists the groups. Default: `groups`."""
    reports: str | None = Field(default=None, alias="POSOLOGY_REPORTS")
    """Folder of reports that the console shows to operators: folders of `posology eval --out`, and JSON files of `posology
    reconcile --out`. Default: none."""
    otlp_endpoint: str | None = Field(default=None, alias="OTEL_EXPORTER_OTLP_ENDPOINT")
    """Address of an OpenTelemetry collector (OTLP over HTTP) for traces and metrics of jobs, e.g. http://localhost:4318.
    Default: none; nothing is made or sent."""
    trace_texts: bool = Field(default=False, alias="POSOLOGY_TRACE_TEXTS")
    """Whether traces may contain the texts of questions, prompts and answers, passages included. Default: false."""
    api_key: SecretStr | None = Field(default=None, alias="POSOLOGY_API_KEY")
    """API key of a tenant, with which `posology mcp --url` asks a service elsewhere. Default: none."""
    uploads: str | None = Field(default=None, alias="POSOLOGY_UPLOADS")
    """Folder or address in object storage (`s3://bucket/uploads`) of files that tenants upload and of their tables, for the API
    and the process that ingests and reads them. Default: none; the API takes no files and no tables."""
    open_uploads: bool = Field(default=False, alias="POSOLOGY_OPEN_UPLOADS")
    """Whether an API without keys takes files from programs of its own machine. Default: false."""
    upload_mib: int = Field(default=512, ge=1, le=10**6, alias="POSOLOGY_UPLOAD_MIB")
    """Maximum MiB of one uploaded file. Default: 512."""
    upload_unpacked_mib: int = Field(
        default=4_096, ge=1, le=10**7, alias="POSOLOGY_UPLOAD_UNPACKED_MIB"
    )
    """Maximum MiB of one uploaded file when it is unpacked. Default: 4096."""
    upload_records: int = Field(default=200_000, ge=1, le=10**9, alias="POSOLOGY_UPLOAD_RECORDS")
    """Maximum passages of one uploaded file; 100,000 abstracts take about 6 GiB of an index. Default: 200000."""
    upload_seconds: int = Field(default=300, ge=1, le=10**6, alias="POSOLOGY_UPLOAD_SECONDS")
    """Maximum seconds of processor time to read one uploaded file once, without encoding. Default: 300."""
    uploads_mib: int = Field(default=4_096, ge=1, le=10**9, alias="POSOLOGY_UPLOADS_MIB")
    """Maximum MiB of a tenant's uploaded files that are not ingested yet. Default: 4096."""
    tables_mib: int = Field(default=1_024, ge=1, le=10**9, alias="POSOLOGY_TABLES_MIB")
    """Maximum MiB of a tenant's tables over HTTP, ended ones included; above it, new ones are refused. Default: 1024."""
    webhook_networks: Annotated[str, AfterValidator(known_networks)] = Field(
        default="", alias="POSOLOGY_WEBHOOK_NETWORKS"
    )
    """Networks that webhooks may call besides public addresses, separated by commas, e.g. `10.1.0.0/16`; `http`
    is allowed there, too. Default: none."""
    ncbi_api_key: SecretStr | None = Field(default=None, alias="NCBI_API_KEY")
    """API key of NCBI for fetches from PubMed: 10 requests a second instead of 3. Default: none."""
    email: str | None = Field(default=None, max_length=200, alias="POSOLOGY_EMAIL")
    """Address of a person, sent to literature services with each request, as NCBI asks and Unpaywall requires. Default: none."""
    eutils_url: str = Field(default=EUTILS, alias="POSOLOGY_EUTILS_URL")
    """Base address of NCBI's E-utilities, or of a copy. Default:
    https://eutils.ncbi.nlm.nih.gov/entrez/eutils/."""
    europepmc_url: str = Field(default=EUROPEPMC, alias="POSOLOGY_EUROPEPMC_URL")
    """Base address of Europe PMC's RESTful web service, or of a copy. Default:
    https://www.ebi.ac.uk/europepmc/webservices/rest/."""
    clinicaltrials_url: str = Field(default=CLINICALTRIALS, alias="POSOLOGY_CLINICALTRIALS_URL")
    """Base address of ClinicalTrials.gov's API 2, or of a copy. Default: https://clinicaltrials.gov/api/v2/."""
    unpaywall_url: str = Field(default=UNPAYWALL, alias="POSOLOGY_UNPAYWALL_URL")
    """Base address of Unpaywall's API 2, or of a copy; it is asked only if POSOLOGY_EMAIL is set. Default:
    https://api.unpaywall.org/v2/."""
    zotero_key: SecretStr | None = Field(
        default=None,
        alias="POSOLOGY_ZOTERO_KEY",
        validation_alias=AliasChoices("POSOLOGY_ZOTERO_KEY", "ZOTERO_API_KEY"),
    )
    """Key of Zotero's web API for `ingest zotero:…`, used if Zotero does not run on this machine. Default: none."""
    zotero_url: str = Field(default=ZOTERO, alias="POSOLOGY_ZOTERO_URL")
    """Base address of Zotero's web API, or of a copy. Default: https://api.zotero.org."""
    zotero_local_url: str = Field(default=ZOTERO_LOCAL, alias="POSOLOGY_ZOTERO_LOCAL_URL")
    """Address of Zotero's local API; `off`: it is not asked. Default: http://127.0.0.1:23119/api."""
    fetch_records: int = Field(default=500, ge=1, le=10_000, alias="POSOLOGY_FETCH_RECORDS")
    """Maximum records of one fetch that a tenant asks for over HTTP, 1 to 10000. Default: 500."""
    fetches_per_hour: int = Field(default=30, ge=1, le=10_000, alias="POSOLOGY_FETCHES_PER_HOUR")
    """Maximum fetches of a tenant in an hour over HTTP. Default: 30."""
    shutdown_grace: float = Field(
        default=60.0, ge=0, allow_inf_nan=False, alias="POSOLOGY_SHUTDOWN_GRACE"
    )
    """Graceful-shutdown timeout of a worker, in seconds; unfinished work is requeued. Default: 60."""
    lease: float = Field(default=15.0, ge=2, allow_inf_nan=False, alias="POSOLOGY_LEASE")
    """Seconds without a heartbeat before a worker is considered dead. Default: 15."""
    batch_wait: float = Field(default=60.0, ge=0, allow_inf_nan=False, alias="POSOLOGY_BATCH_WAIT")
    """Seconds that a call of the tier `batch` waits for others to share a provider's batch. Default: 60."""
    batch_rows: int = Field(default=500, ge=1, le=5_000, alias="POSOLOGY_BATCH_ROWS")
    """Maximum calls in one batch of a provider, 1 to 5000; a full batch is sent at once. Default: 500."""
    batch_poll: float = Field(default=60.0, ge=0.1, le=3_600, alias="POSOLOGY_BATCH_POLL")
    """Maximum seconds between two polls of a provider's batch. Default: 60."""
    batch_lease: float = Field(default=120.0, ge=1, le=3_600, alias="POSOLOGY_BATCH_LEASE")
    """Maximum seconds that a worker takes to create a provider's batch; as many seconds later, a batch that cannot be
    found counts as not created. Default: 120."""
    workers: int | None = Field(default=None, ge=1, le=1_024, alias="POSOLOGY_WORKERS")
    """Number of worker processes of `posology up`; each takes about 450 MB with the packaged encoder.
    Default: one for each core."""
    worker_concurrency: int = Field(default=32, ge=1, alias="POSOLOGY_WORKER_CONCURRENCY")
    """Maximum concurrent jobs and partitions in each worker process. Default: 32."""
    task_events: bool = Field(default=False, alias="POSOLOGY_TASK_EVENTS")
    """Whether workers send Celery's events of single tasks, which Flower shows. Default: false."""

    log_format: Annotated[LogFormat, BeforeValidator(lower)] = Field(
        default=LogFormat.AUTO, alias="POSOLOGY_LOG_FORMAT"
    )
    """Format of log lines: `json`, `console` (text), or `auto`, which is text on a terminal and JSON elsewhere.
    Default: `auto`."""
    log_level: Annotated[LogLevel, BeforeValidator(lower)] = Field(
        default=LogLevel.INFO, alias="POSOLOGY_LOG_LEVEL"
    )
    """Lowest level of log lines: `debug`, `info`, `warning` or `error`. Default: `info`."""
    log_questions: bool = Field(default=False, alias="POSOLOGY_LOG_QUESTIONS")
    """Whether log lines may contain the text of questions, and the messages of internal errors, which may quote them.
    Default: false."""

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
