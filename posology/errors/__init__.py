"""Every error that Posology raises on purpose.

::

    PosologyError
    ├── InputError                  the input is wrong
    │   ├── InvalidQuery            a wrong field or parameter
    │   ├── InvalidLimit            a limit that no tenant can have
    │   ├── CollectionNotFound      no collection has that name, or the tenant may not read it
    │   ├── InvalidRecord           a recorded decision that cannot be replayed
    │   ├── BadRecord               a record of a corpus file that cannot be read
    │   ├── SyncRefused             files that cannot be applied in order
    │   └── BadFile                 a file that cannot be read (further)
    ├── ConfigurationError          the configuration is wrong
    │   ├── UnknownModel            no such provider, or a name without a provider
    │   ├── UnpricedModel           no price is known for the model
    │   ├── BadPrices               the price file cannot be read, or is wrong
    │   ├── BadArtefact             a policy's file cannot be read
    │   ├── PolicyMismatch          a policy's file does not fit the index or compressor
    │   ├── PromptsMismatch         templates of a user's own are not loaded here
    │   ├── MissingKey              the provider's key is not set
    │   ├── ReaderUnavailable       the package that reads a file format is not installed
    │   ├── EmbedderUnavailable     the embedder's files cannot be loaded
    │   ├── ScorerUnavailable       the self-information model's files cannot be loaded
    │   ├── ModelUnavailable        a compressor's or re-ranker's model cannot be loaded
    │   ├── DeviceUnavailable       the device for a model is not available
    │   ├── NoWorkers               a queue has no workers
    │   ├── StackRuns               another stack has the data folder
    │   └── ChildFailed             a process of the stack keeps failing
    ├── IndexFault                  the index cannot be used
    │   ├── IndexMissing            there is no index at that place
    │   ├── IndexMismatch           it was made with another embedder or format
    │   ├── EncodingFailed          no ingest worker can encode anything for it
    │   ├── IndexUnfinished         a sync of it was interrupted
    │   ├── VersionGone             that version is not kept (any more)
    │   ├── PassageNotFound         it does not hold that passage
    │   └── IndexLocked             another process is writing it
    ├── ProviderError               one attempt at a model call failed
    │   ├── ProviderUnreachable     no connection, or it was cut
    │   ├── ProviderTimeout         no reply in time
    │   ├── RateLimited             429
    │   ├── NoCapacity              429: none in the tier flex at the moment
    │   ├── ProviderOverloaded      5xx, 529
    │   ├── AuthenticationFailed    401
    │   ├── PermissionRefused       403
    │   ├── QuotaExhausted          the account has no credit left
    │   ├── ModelNotFound           404
    │   ├── RequestRejected         400, 409, 413, 422
    │   │   └── ContextTooLong      more tokens than the model's window
    │   ├── UnusableReply           a reply came, and may have been billed, but cannot be used
    │   │   ├── MalformedReply      no valid body of that provider's format
    │   │   ├── SchemaViolation     not the asked-for structure, even after a repair
    │   │   └── TruncatedReply      cut at ``max_tokens`` before the structure closed
    │   ├── NotProcessed            the provider's batch ended before the request was processed
    │   └── NothingRead             no partition of a question could be read
    ├── JobError                    an operation on a job failed
    │   ├── JobNotFound             no job has that id (any more)
    │   ├── BatchNotFound           no batch has that id (any more)
    │   ├── IngestNotFound          no ingest has that id (any more)
    │   ├── WebhookNotFound         no endpoint of webhooks has that id
    │   ├── WatchNotFound           no watch has that id (any more)
    │   ├── WatchEnded              the watch has ended
    │   ├── TableNotFound           no table has that id (any more)
    │   ├── TableUnfinished         the table has no rows yet
    │   ├── BatchCancelled          the batch was cancelled: no more rows of it are submitted
    │   ├── IdempotencyConflict     the key was used for another request
    │   ├── JobFinished             the job has ended already
    │   ├── JobNotFailed            only a failed, cancelled or expired job can be retried
    │   ├── JobNotSucceeded         only a succeeded job takes feedback
    │   ├── JobCancelled            the job was cancelled: no more calls for it
    │   └── JobSuperseded           another worker has taken over the unit
    ├── BudgetError                 the tenant's limits refuse the call: nothing was sent
    │   ├── BudgetExhausted         the remaining budget is below the call's maximum cost
    │   ├── NothingAffordable       the remaining budget pays for no strategy
    │   ├── HeadroomReserved        in-flight calls have reserved the rest: wait for them
    │   ├── CallTooLarge            more tokens than the tenant's limit per minute
    │   ├── ModelNotAllowed         the tenant may not use the model
    │   ├── QueueFull               the tenant has no room for more jobs
    │   └── TenantDisabled          the tenant is disabled
    ├── TenantError                 an operation on a tenant failed
    │   ├── TenantNotFound          no tenant has that name
    │   ├── TenantExists            a tenant has that name already
    │   ├── IngestNotAllowed        the tenant may not add literature to the index
    │   └── LedgerBusy              its ledger is being archived or rebuilt
    ├── MirrorFailed                the database of a ledger's mirror is unreachable, or refuses
    │   └── MirrorMismatch          it has tables of another layout
    ├── KeyRefused                  the API key or access token is unknown, invalid or revoked
    ├── DriftFound                  a provider's account disagrees with the ledger
    ├── DecisionChanged             a policy decides differently from the same record
    ├── StoreUnavailable            Redis is unreachable: nothing is spent
    ├── ApiError                    a service refused a request, with no known cause
    │   ├── ApiUnreachable          no response came from it
    │   └── FetchFailed             a literature service gave no usable reply
    └── DeadlineExceeded            the deadline of the work has passed
        └── JobExpired              a job's deadline passed, by the store's clock

Errors carry their numbers as fields, can be pickled, and have a message that says what to do.
``exit_code`` is the exit status of the ``posology`` command.
"""

from __future__ import annotations

from posology.errors.base import (
    BadArtefact,
    BadFile,
    BadPrices,
    BadRecord,
    ChildFailed,
    CollectionNotFound,
    ConfigurationError,
    DeviceUnavailable,
    EmbedderUnavailable,
    EncodingFailed,
    IndexFault,
    IndexLocked,
    IndexMismatch,
    IndexMissing,
    IndexUnfinished,
    InputError,
    InvalidQuery,
    InvalidRecord,
    MissingKey,
    ModelUnavailable,
    NoWorkers,
    PassageNotFound,
    PolicyMismatch,
    PosologyError,
    PromptsMismatch,
    ReaderUnavailable,
    ScorerUnavailable,
    StackRuns,
    SyncRefused,
    UnknownModel,
    UnpricedModel,
    VersionGone,
)
from posology.errors.budget import (
    BudgetError,
    BudgetExhausted,
    CallTooLarge,
    DriftFound,
    HeadroomReserved,
    IngestNotAllowed,
    InvalidLimit,
    KeyRefused,
    LedgerBusy,
    MirrorFailed,
    MirrorMismatch,
    ModelNotAllowed,
    NothingAffordable,
    QueueFull,
    TenantDisabled,
    TenantError,
    TenantExists,
    TenantNotFound,
)
from posology.errors.jobs import (
    ApiError,
    ApiUnreachable,
    BatchCancelled,
    BatchNotFound,
    DeadlineExceeded,
    DecisionChanged,
    FetchFailed,
    IdempotencyConflict,
    IngestNotFound,
    JobCancelled,
    JobError,
    JobExpired,
    JobFinished,
    JobNotFailed,
    JobNotFound,
    JobNotSucceeded,
    JobSuperseded,
    StoreUnavailable,
    TableNotFound,
    TableUnfinished,
    WatchEnded,
    WatchNotFound,
    WebhookNotFound,
)
from posology.errors.providers import (
    AuthenticationFailed,
    ContextTooLong,
    MalformedReply,
    ModelNotFound,
    NoCapacity,
    NothingRead,
    NotProcessed,
    PermissionRefused,
    ProviderError,
    ProviderOverloaded,
    ProviderTimeout,
    ProviderUnreachable,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
    SchemaViolation,
    TruncatedReply,
    UnusableReply,
)

__all__ = [
    "ApiError",
    "ApiUnreachable",
    "AuthenticationFailed",
    "BadArtefact",
    "BadFile",
    "BadPrices",
    "BadRecord",
    "BatchCancelled",
    "BatchNotFound",
    "BudgetError",
    "BudgetExhausted",
    "CallTooLarge",
    "ChildFailed",
    "CollectionNotFound",
    "ConfigurationError",
    "ContextTooLong",
    "DeadlineExceeded",
    "DecisionChanged",
    "DeviceUnavailable",
    "DriftFound",
    "EmbedderUnavailable",
    "EncodingFailed",
    "FetchFailed",
    "HeadroomReserved",
    "IdempotencyConflict",
    "IndexFault",
    "IndexLocked",
    "IndexMismatch",
    "IndexMissing",
    "IndexUnfinished",
    "IngestNotAllowed",
    "IngestNotFound",
    "InputError",
    "InvalidLimit",
    "InvalidQuery",
    "InvalidRecord",
    "JobCancelled",
    "JobError",
    "JobExpired",
    "JobFinished",
    "JobNotFailed",
    "JobNotFound",
    "JobNotSucceeded",
    "JobSuperseded",
    "KeyRefused",
    "LedgerBusy",
    "MalformedReply",
    "MirrorFailed",
    "MirrorMismatch",
    "MissingKey",
    "ModelNotAllowed",
    "ModelNotFound",
    "ModelUnavailable",
    "NoCapacity",
    "NoWorkers",
    "NotProcessed",
    "NothingAffordable",
    "NothingRead",
    "PassageNotFound",
    "PermissionRefused",
    "PolicyMismatch",
    "PosologyError",
    "PromptsMismatch",
    "ProviderError",
    "ProviderOverloaded",
    "ProviderTimeout",
    "ProviderUnreachable",
    "QueueFull",
    "QuotaExhausted",
    "RateLimited",
    "ReaderUnavailable",
    "RequestRejected",
    "SchemaViolation",
    "ScorerUnavailable",
    "StackRuns",
    "StoreUnavailable",
    "SyncRefused",
    "TableNotFound",
    "TableUnfinished",
    "TenantDisabled",
    "TenantError",
    "TenantExists",
    "TenantNotFound",
    "TruncatedReply",
    "UnknownModel",
    "UnpricedModel",
    "UnusableReply",
    "VersionGone",
    "WatchEnded",
    "WatchNotFound",
    "WebhookNotFound",
]
