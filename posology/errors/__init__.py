"""Every error that Posology raises on purpose.

::

    PosologyError
    ├── InputError                  what was handed in is wrong
    │   ├── InvalidQuery            a question that cannot be asked
    │   ├── InvalidLimit            a limit that no tenant can have
    │   ├── InvalidRecord           a record of a decision that cannot be decided from again
    │   ├── BadRecord               a record of a corpus file that cannot be read
    │   ├── SyncRefused             files that cannot be applied in order
    │   └── BadFile                 a file that cannot be read (further)
    ├── ConfigurationError          what Posology was set up with is wrong
    │   ├── UnknownModel            no such provider, or a name without a provider
    │   ├── UnpricedModel           no price is known for the model
    │   ├── BadPrices               the file of prices cannot be read, or says what cannot be
    │   ├── BadArtefact             the file of what a policy learned cannot be read
    │   ├── PolicyMismatch          what a policy learned does not fit what it is to decide about
    │   ├── MissingKey              the provider's key is not set
    │   ├── ReaderUnavailable       what reads files of a format is not installed
    │   ├── EmbedderUnavailable     the embedder's files cannot be loaded
    │   ├── ScorerUnavailable       those of the language model for self-information cannot
    │   ├── ModelUnavailable        those of another model that a compressor or re-ranker runs
    │   ├── DeviceUnavailable       the device that a model is to run on is not there
    │   ├── NoWorkers               nobody works on a queue
    │   ├── StackRuns               another stack has the data folder
    │   └── ChildFailed             a process of the stack ends again and again
    ├── IndexFault                  the index cannot serve
    │   ├── IndexMissing            there is none at that place
    │   ├── IndexMismatch           it was made with another embedder, or by another format
    │   ├── EncodingFailed          no ingest worker can encode anything for it
    │   ├── IndexUnfinished         a sync of it was broken off
    │   ├── VersionGone             it does not hold that version (any more)
    │   └── IndexLocked             another process is writing it
    ├── ProviderError               one attempt at a model call failed
    │   ├── ProviderUnreachable     no connection, or it was cut
    │   ├── ProviderTimeout         no reply in time
    │   ├── RateLimited             429
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
    │   └── NothingRead             not one partition of a question could be read
    ├── JobError                    a job cannot be worked on as asked
    │   ├── JobNotFound             there is none of that id (any more)
    │   ├── BatchNotFound           there is no batch of that id (any more)
    │   ├── IdempotencyConflict     the key was used for another question
    │   ├── JobFinished             what was asked needs a job that has not ended
    │   ├── JobNotFailed            only a failed, cancelled or expired job can be tried again
    │   ├── JobNotSucceeded         only the answer of a job that has succeeded can be judged
    │   ├── JobCancelled            the job was cancelled: nothing more may be spent on it
    │   └── JobSuperseded           another worker has taken the work over
    ├── BudgetError                 the tenant's limits do not allow it: nothing was sent
    │   ├── BudgetExhausted         what is left does not pay for the call at its worst
    │   ├── NothingAffordable       it pays for no way to answer a question
    │   ├── HeadroomReserved        calls under way hold what is left: wait for them
    │   ├── CallTooLarge            more tokens than the tenant has in a minute
    │   ├── ModelNotAllowed         the tenant may not use the model
    │   └── TenantDisabled          nothing is spent for the tenant
    ├── TenantError                 what was asked about a tenant cannot be done
    │   ├── TenantNotFound          there is none of that name
    │   ├── TenantExists            there is one of that name already
    │   └── LedgerBusy              its ledger is being archived or rebuilt
    ├── KeyRefused                  the API key is none, or no longer one
    ├── DriftFound                  a provider's account says something else than the ledger
    ├── DecisionChanged             a policy decides otherwise from the same record
    ├── StoreUnavailable            Redis is out of reach: nothing is spent
    ├── ApiError                    a service did not do as asked, and says no more than its status
    │   └── ApiUnreachable          no response came from it
    └── DeadlineExceeded            the time for the whole work is over
        └── JobExpired              a job's deadline passed, by the store's clock

Errors carry their numbers as fields, survive pickling, and have a message that says what to do.
``exit_code`` is what the ``posology`` command ends with.
"""

from __future__ import annotations

from posology.errors.base import (
    BadArtefact,
    BadFile,
    BadPrices,
    BadRecord,
    ChildFailed,
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
    PolicyMismatch,
    PosologyError,
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
    InvalidLimit,
    KeyRefused,
    LedgerBusy,
    ModelNotAllowed,
    NothingAffordable,
    TenantDisabled,
    TenantError,
    TenantExists,
    TenantNotFound,
)
from posology.errors.jobs import (
    ApiError,
    ApiUnreachable,
    BatchNotFound,
    DeadlineExceeded,
    DecisionChanged,
    IdempotencyConflict,
    JobCancelled,
    JobError,
    JobExpired,
    JobFinished,
    JobNotFailed,
    JobNotFound,
    JobNotSucceeded,
    JobSuperseded,
    StoreUnavailable,
)
from posology.errors.providers import (
    AuthenticationFailed,
    ContextTooLong,
    MalformedReply,
    ModelNotFound,
    NothingRead,
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
    "BatchNotFound",
    "BudgetError",
    "BudgetExhausted",
    "CallTooLarge",
    "ChildFailed",
    "ConfigurationError",
    "ContextTooLong",
    "DeadlineExceeded",
    "DecisionChanged",
    "DeviceUnavailable",
    "DriftFound",
    "EmbedderUnavailable",
    "EncodingFailed",
    "HeadroomReserved",
    "IdempotencyConflict",
    "IndexFault",
    "IndexLocked",
    "IndexMismatch",
    "IndexMissing",
    "IndexUnfinished",
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
    "MissingKey",
    "ModelNotAllowed",
    "ModelNotFound",
    "ModelUnavailable",
    "NoWorkers",
    "NothingAffordable",
    "NothingRead",
    "PermissionRefused",
    "PolicyMismatch",
    "PosologyError",
    "ProviderError",
    "ProviderOverloaded",
    "ProviderTimeout",
    "ProviderUnreachable",
    "QuotaExhausted",
    "RateLimited",
    "ReaderUnavailable",
    "RequestRejected",
    "SchemaViolation",
    "ScorerUnavailable",
    "StackRuns",
    "StoreUnavailable",
    "SyncRefused",
    "TenantDisabled",
    "TenantError",
    "TenantExists",
    "TenantNotFound",
    "TruncatedReply",
    "UnknownModel",
    "UnpricedModel",
    "UnusableReply",
    "VersionGone",
]
