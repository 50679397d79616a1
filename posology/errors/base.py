"""The base of all errors, and those of input, set-up and index."""

from __future__ import annotations

from typing import Any, ClassVar


class PosologyError(Exception):
    """Base of all. Subclasses take keyword arguments only, kept as attributes."""

    #: exit status of the ``posology`` command
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        #: one line that says what to do
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
    """What was handed in is wrong."""

    exit_code = 3


class InvalidQuery(InputError):
    """A question that cannot be asked."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message, field=field)

    #: the part of the query that is wrong
    field: str


class InvalidRecord(InputError):
    """A record of a decision that does not say what its policy looks at."""

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message, field=field)

    #: the feature that is missing or wrong
    field: str


class BadRecord(InputError):
    """A record of a corpus file that cannot be read; the records around it can."""

    def __init__(self, reason: str, *, path: str, line: int, record: str | None = None) -> None:
        where = f"{path}:{line}" if record is None else f"{path}:{line} ({record})"
        super().__init__(f"{where}: {reason}", path=path, line=line, reason=reason, record=record)

    path: str
    #: its line, or its place among the file's records, counted from 1
    line: int
    reason: str
    #: its id, e.g. ``pmid:10051933``; ``None``: it has none that can be read
    record: str | None


class BadFile(InputError):
    """A file that cannot be read, or not beyond a line."""

    def __init__(self, reason: str, *, path: str, line: int | None = None) -> None:
        where = path if line is None else f"{path}:{line}"
        super().__init__(f"{where}: {reason}", path=path, line=line, reason=reason)

    path: str
    #: the last line that was read, ``None`` when the file did not open
    line: int | None
    reason: str


class SyncRefused(InputError):
    """The files of a folder cannot be applied in order as they are; nothing has been."""

    def __init__(self, message: str, *, files: tuple[str, ...]) -> None:
        super().__init__(message, files=files)

    #: names of those that are in the way, or are missing
    files: tuple[str, ...]


class ConfigurationError(PosologyError):
    """What Posology was set up with is wrong."""

    exit_code = 4


class UnknownModel(ConfigurationError):
    """No such provider, or a model name without a provider."""

    def __init__(self, message: str, *, model: str) -> None:
        super().__init__(message, model=model)

    model: str


class UnpricedModel(ConfigurationError):
    """No price is known for the model: what a call to it costs cannot be bounded."""

    def __init__(self, *, model: str) -> None:
        super().__init__(
            f"no price is known for {model!r}, so nothing is spent on it: write its prices into the "
            "file that POSOLOGY_PRICES names, or declare it free there (docs/how-to/prices.md)",
            model=model,
        )

    model: str


class BadPrices(ConfigurationError):
    """The file of prices cannot be read, or says what cannot be."""

    def __init__(self, reason: str, *, path: str, key: str | None) -> None:
        where = path if key is None else f"{path}: {key}"
        super().__init__(f"{where}: {reason}", path=path, key=key, reason=reason)

    path: str
    #: the key that is wrong; ``None``: not one of them alone
    key: str | None
    reason: str


class BadArtefact(ConfigurationError):
    """A file of what a policy learned cannot be read, or not by this version."""

    def __init__(self, reason: str, *, path: str) -> None:
        super().__init__(f"{path}: {reason}", path=path, reason=reason)

    path: str
    reason: str


class PolicyMismatch(ConfigurationError):
    """What a policy learned does not fit what it is to decide about."""

    def __init__(self, message: str, *, policy: str) -> None:
        super().__init__(message, policy=policy)

    #: the policy's name, or that of its part
    policy: str


class MissingKey(ConfigurationError):
    """The provider's key is not set."""

    def __init__(self, *, variable: str) -> None:
        super().__init__(f"set {variable} to use this provider", variable=variable)

    variable: str


class ReaderUnavailable(ConfigurationError):
    """What reads files of this format is not installed."""

    def __init__(self, message: str, *, package: str) -> None:
        super().__init__(message, package=package)

    #: the distribution that is missing
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
    """The files of a model that a compressor or a re-ranker runs cannot be loaded."""

    def __init__(self, message: str, *, model: str) -> None:
        super().__init__(message, model=model)

    model: str


class DeviceUnavailable(ConfigurationError):
    """The device that a model is to run on is not on this machine, or does not answer."""

    def __init__(self, message: str, *, device: str) -> None:
        super().__init__(message, device=device)

    #: as it was named
    device: str


class StackRuns(ConfigurationError):
    """Another stack has the data folder."""

    def __init__(self, message: str, *, pid: int | None, api: str | None) -> None:
        super().__init__(message, pid=pid, api=api)

    #: of the stack that runs, ``None`` when it has not said so yet
    pid: int | None
    #: where its API is, ``None`` without one
    api: str | None


class ChildFailed(ConfigurationError):
    """A process of the stack ends again and again, or is not ready in time."""

    def __init__(self, message: str, *, child: str, lines: tuple[str, ...]) -> None:
        super().__init__(message, child=child, lines=lines)

    #: the process's name in the stack, such as ``worker1``
    child: str
    #: the last lines that it wrote
    lines: tuple[str, ...]


class NoWorkers(ConfigurationError):
    """Nobody works on a queue, so that whoever waits for it would wait for good."""

    def __init__(self, message: str, *, queue: str, seconds: float) -> None:
        super().__init__(message, queue=queue, seconds=seconds)

    queue: str
    #: for which no worker of it has told of itself
    seconds: float


class IndexFault(PosologyError):
    """The index cannot serve."""

    exit_code = 5

    def __init__(self, message: str, *, index: str) -> None:
        super().__init__(message, index=index)

    index: str


class IndexMissing(IndexFault):
    """There is no index at that place."""


class IndexMismatch(IndexFault):
    """The index was made with another embedder, or by another format."""


class EncodingFailed(IndexFault):
    """No worker can encode anything for the index; what was encoded before is written, or kept for later."""

    def __init__(self, message: str, *, index: str, shard: str, tries: int, reason: str) -> None:
        PosologyError.__init__(self, message, index=index, shard=shard, tries=tries, reason=reason)

    #: name of the first shard that nobody could encode
    shard: str
    #: how often workers handed it back
    tries: int
    #: what the last of them said
    reason: str


class IndexLocked(IndexFault):
    """Another process is writing the index."""


class IndexUnfinished(IndexFault):
    """A sync of the index was broken off: readers see the version before it, until it is finished."""


class VersionGone(IndexFault):
    """The index does not hold that version (any more)."""

    def __init__(self, *, index: str, version: int, days: float) -> None:
        PosologyError.__init__(
            self,
            f"{index}@{version} cannot be read: versions are kept for {days:g} days after they were replaced, "
            "and only published ones; `posology index versions` lists those that there are",
            index=index,
            version=version,
            days=days,
        )

    #: its number
    version: int
    #: for how long versions are kept after they were replaced
    days: float
