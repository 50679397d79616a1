"""Steps of a stub provider's script: replies, errors and delays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from posology.types import Finish, Usage


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """A request that the stub was sent."""

    #: e.g. ``/v1/messages``
    path: str
    #: names in lower case
    headers: Mapping[str, str]
    #: the body, decoded
    json: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """A success, in the format of the provider that was asked."""

    #: the text, or a function from the request's body to it
    text: str | Callable[[Any], str]
    #: or a function from the request's body and the text to it; ``None``: the reply has no usage
    usage: Usage | Callable[[Any, str], Usage] | None = field(
        default_factory=lambda: Usage(input=100, output=10)
    )
    finish: Finish = Finish.STOP
    #: seconds before the reply
    latency: float = 0.0
    #: seconds over which its body goes out, in pieces
    drip: float = 0.0
    #: service tier that the reply names, in the provider's words; ``None``: the one that was asked for
    tier: str | None = None
    #: whether it says 0 for every count, whatever is billed
    zeros: bool = False


def _words(texts: Sequence[str]) -> Usage:
    return Usage(input=sum(len(text.split()) + 2 for text in texts))


@dataclass(frozen=True, kw_only=True, slots=True)
class Vectors:
    """A success of ``/v1/embeddings``: texts that share words get vectors that are near each other."""

    #: numbers a vector, where the request asks for none
    dim: int = 256
    #: or a function from the texts to it; ``None``: the reply has no usage
    usage: Usage | Callable[[Sequence[str]], Usage] | None = _words
    #: what goes out instead of the vectors, one a text, in order
    change: Callable[[list[list[float]]], list[list[float]]] = list
    #: seconds before the reply
    latency: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Status:
    """An error status."""

    code: int
    #: whether it stands in a reply of status 200
    within: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    #: the provider's code for the cause; ``None``: what goes with the status
    kind: str | None = None
    message: str = "no"
    #: sent as it is instead of an error in the provider's format
    body: bytes | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NoSuchModel:
    """A 404 in the provider's words for a model that it does not have."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hang:
    """Silence, and then an end of the connection."""

    #: at most; the stub's end ends it early
    seconds: float = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Cut:
    """A connection that ends too early."""

    #: of a good reply's body; ``None``: before the status line
    after_bytes: int | None = None
    #: the reply that was ready; ``None``: a short one, or none at all where no byte of it is sent
    of: Reply | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Broken:
    """A stream that breaks off in the middle of its reply; so does a reply that is not streamed."""

    #: the reply that was ready, which the provider bills
    of: Reply = field(default_factory=lambda: Reply(text="broken off in the middle"))
    #: what comes instead of the rest: an end of the connection, an end of the body, nothing at all, or an error
    by: Literal["cut", "end", "silence", "error"] = "cut"
    #: seconds of silence, at most; the stub's end ends it early
    seconds: float = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Malformed:
    """A 200 whose body is not the provider's."""

    body: bytes = b"upstream closed"
    content_type: str = "application/json"


#: OpenAI's refusal of a request in the tier flex for which it has no capacity
NO_CAPACITY = Status(code=429, kind="resource_unavailable", message="Resource Unavailable")

Step = Reply | Vectors | Status | NoSuchModel | Hang | Cut | Broken | Malformed
