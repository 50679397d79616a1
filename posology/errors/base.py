"""The base of all errors, and the errors of input, configuration and index."""

from __future__ import annotations

from typing import Any, ClassVar


class PosologyError(Exception):
    """Base of all. Subclasses take keyword arguments only, kept as attributes."""

    #: exit status of the ``posology`` command
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        #: one line that says what is wrong and what to do
        self.message = message
        self._details = details
        for name, value in details.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self._details)

    @property
    def details(self) -> dict[str, Any]:
        """The error's fields, for records and ``--json``."""
        return dict(self._details)


def _rebuild(kind: type[PosologyError], message: str, details: dict[str, Any]) -> PosologyError:
    error = kind.__new__(kind)
    PosologyError.__init__(error, message, **details)
    return error


class InputError(PosologyError):
    """The input is wrong."""

    exit_code = 3


class InvalidQuery(InputError):
    """A field or parameter of the request is wrong."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message, field=field)

    #: name of the wrong field of the query
    field: str


class CollectionNotFound(InputError):
    """There is no such collection, or the tenant may not read it."""

    def __init__(self, *, collection: str) -> None:
        super().__init__(
            f"there is no collection {collection!r} that this tenant may read: omit it for the default index, or ask the "
            "operator",
            collection=collection,
        )

    collection: str


class InvalidRecord(InputError):
    """A recorded decision that lacks a feature of its policy."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message, field=field)

    #: name of the missing or wrong feature
    field: str


class BadRecord(InputError):
    """A record of a corpus file that cannot be read; the other records can."""

    def __init__(self, reason: str, *, path: str, line: int, record: str | None = None) -> None:
        where = f"{path}:{line}" if record is None else f"{path}:{line} ({record})"
        super().__init__(f"{where}: {reason}", path=path, line=line, reason=reason, record=record)

    path: str
    #: line, or number of the record in the file, from 1
    line: int
    reason: str
    #: id, e.g. ``pmid:10051933``; ``None``: it cannot be read
    record: str | None


class BadFile(InputError):
    """A file that cannot be read, or only up to a line."""

    def __init__(self, reason: str, *, path: str, line: int | None = None) -> None:
        where = path if line is None else f"{path}:{line}"
        super().__init__(f"{where}: {reason}", path=path, line=line, reason=reason)

    path: str
    #: last line that was read; ``None``: the file could not be opened
    line: int | None
    reason: str


class SyncRefused(InputError):
    """The files of a folder cannot be applied in order; none was applied."""

    def __init__(self, message: str, *, files: tuple[str, ...]) -> None:
        super().__init__(message, files=files)

    #: names of the conflicting or missing files
    files: tuple[str, ...]


class ConfigurationError(PosologyError):
    """The configuration is wrong."""

    exit_code = 4


class UnknownModel(ConfigurationError):
    """No such provider, or a model name without a provider."""

    def __init__(self, message: str, *, model: str) -> None:
        super().__init__(message, model=model)

    model: str


class UnpricedModel(ConfigurationError):
    """No price is known for the model, or for its service tier, so the cost of a call cannot be bounded."""

    def __init__(self, *, model: str, tier: str = "standard") -> None:
        if tier == "standard":
            message = (
                f"no price is known for {model!r}, so it cannot be called: add its prices to the file that "
                "POSOLOGY_PRICES names, or declare it free there (docs/how-to/prices.md)"
            )
        else:
            message = (
                f"no price is known for {model!r} in the tier {tier}, so it cannot be called there: add the tier's "
                "price to the file that POSOLOGY_PRICES names, or use the tier standard (docs/how-to/prices.md)"
            )
        super().__init__(message, model=model, tier=tier)

    model: str
    #: service tier, e.g. ``batch``
    tier: str


class BadPrices(ConfigurationError):
    """The price file cannot be read, or is wrong."""

    def __init__(self, reason: str, *, path: str, key: str | None) -> None:
        where = path if key is None else f"{path}: {key}"
        super().__init__(f"{where}: {reason}", path=path, key=key, reason=reason)

    path: str
    #: the wrong key; ``None``: more than one, or the file as a whole
    key: str | None
    reason: str


class BadArtefact(ConfigurationError):
    """A policy's file cannot be read, or not by this version."""

    def __init__(self, reason: str, *, path: str) -> None:
        super().__init__(f"{path}: {reason}", path=path, reason=reason)

    path: str
    reason: str


class PolicyMismatch(ConfigurationError):
    """A policy's file does not fit the index, the compressor or the features."""

    def __init__(self, message: str, *, policy: str) -> None:
        super().__init__(message, policy=policy)

    #: name of the policy, or of its part
    policy: str


class PromptsMismatch(ConfigurationError):
    """A question, or the record of one, needs templates of a user's own that this process has not loaded."""

    def __init__(self, message: str, *, prompts: str) -> None:
        super().__init__(message, prompts=prompts)

    #: digest of the templates
    prompts: str


class MissingKey(ConfigurationError):
    """The provider's key is not set."""

    def __init__(self, *, variable: str, provider: str | None = None) -> None:
        provider = provider or variable.removesuffix("_API_KEY").lower()
        super().__init__(
            f"the key of {provider} is missing: run `posology keys set {provider}`, or set {variable}",
            variable=variable,
        )

    #: environment variable of the key
    variable: str


class ReaderUnavailable(ConfigurationError):
    """The package that reads files of this format is not installed."""

    def __init__(self, message: str, *, package: str) -> None:
        super().__init__(message, package=package)

    #: name of the missing distribution
    package: str


class EmbedderUnavailable(ConfigurationError):
    """The embedder's files cannot be loaded."""

    def __init__(self, message: str, *, embedder: str) -> None:
        super().__init__(message, embedder=embedder)

    embedder: str


class ScorerUnavailable(ConfigurationError):
    """The files of the language model for self-information cannot be loaded."""

    def __init__(self, message: str, *, model: str) -> None:
        super().__init__(message, model=model)

    model: str


class ModelUnavailable(ConfigurationError):
    """The files of a model that runs on this machine cannot be loaded."""

    def __init__(self, message: str, *, model: str) -> None:
        super().__init__(message, model=model)

    model: str


class DeviceUnavailable(ConfigurationError):
    """The device for a model is not on this machine, or does not respond."""

    def __init__(self, message: str, *, device: str) -> None:
        super().__init__(message, device=device)

    #: as the user named it
    device: str


class StackRuns(ConfigurationError):
    """Another stack has the data folder."""

    def __init__(self, message: str, *, pid: int | None, api: str | None) -> None:
        super().__init__(message, pid=pid, api=api)

    #: process id of the running stack; ``None``: not reported yet
    pid: int | None
    #: address of its API; ``None``: it has none
    api: str | None


class ChildFailed(ConfigurationError):
    """A process of the stack keeps failing, or is not ready in time."""

    def __init__(self, message: str, *, child: str, lines: tuple[str, ...]) -> None:
        super().__init__(message, child=child, lines=lines)

    #: name of the process, e.g. ``worker1``
    child: str
    #: last lines of its output
    lines: tuple[str, ...]


class NoWorkers(ConfigurationError):
    """A queue has no workers, so its items would wait for ever."""

    def __init__(self, message: str, *, queue: str, seconds: float) -> None:
        super().__init__(message, queue=queue, seconds=seconds)

    queue: str
    #: seconds without a worker's heartbeat
    seconds: float


class IndexFault(PosologyError):
    """The index cannot be used."""

    exit_code = 5

    def __init__(self, message: str, *, index: str) -> None:
        super().__init__(message, index=index)

    index: str


class IndexMissing(IndexFault):
    """There is no index at that place."""


class IndexMismatch(IndexFault):
    """The index was made with another embedder or format."""


class EncodingFailed(IndexFault):
    """No worker can encode for the index; rows that were encoded before are written, or kept for later."""

    def __init__(self, message: str, *, index: str, shard: str, tries: int, reason: str) -> None:
        PosologyError.__init__(self, message, index=index, shard=shard, tries=tries, reason=reason)

    #: name of the first shard that could not be encoded
    shard: str
    #: how often workers requeued it
    tries: int
    #: reason that the last worker gave
    reason: str


class PassageNotFound(IndexFault):
    """The index does not hold that passage."""

    def __init__(self, message: str, *, index: str, passage: str) -> None:
        PosologyError.__init__(self, message, index=index, passage=passage)

    #: id of the passage; the first, if several are missing
    passage: str


class IndexLocked(IndexFault):
    """Another process is writing the index."""


class IndexUnfinished(IndexFault):
    """A sync of the index was interrupted: readers see the version before it until a sync finishes."""


class VersionGone(IndexFault):
    """The index does not keep that version (any more)."""

    def __init__(self, *, index: str, version: int, days: float) -> None:
        PosologyError.__init__(
            self,
            f"{index}@{version} cannot be read: published versions are kept for {days:g} days after they "
            "were replaced. `posology index versions` lists the versions that are kept",
            index=index,
            version=version,
            days=days,
        )

    #: number of the version
    version: int
    #: days for which a replaced version is kept
    days: float
