"""Kinds of values of settings, their defaults and their checks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Literal

from pydantic_core import PydanticCustomError

from posology.errors import InvalidQuery
from posology.types.money import COLLECTION

DEFAULT_MODEL = "offline:extractive"
DEFAULT_POLICY = "router"
#: of the compressors that call no model, it keeps the most relevant text in the fewest tokens on unseen documents;
#: see ``docs/concepts/compressors.md``
DEFAULT_COMPRESSOR = "pruner"
#: tokens of passages that the packaged cross-encoder reads for a question
READ = 2_000
#: methods of the offline reader
ReaderMethod = Literal["cross-encoder", "late"]
#: address of Redis for workers and the API without ``POSOLOGY_REDIS_URL``
DEFAULT_REDIS = "redis://127.0.0.1:6379/0"
#: addresses of literature services
EUTILS = "https://eutils.ncbi.nlm.nih.gov/entrez/eutils/"
EUROPEPMC = "https://www.ebi.ac.uk/europepmc/webservices/rest/"
CLINICALTRIALS = "https://clinicaltrials.gov/api/v2/"
UNPAYWALL = "https://api.unpaywall.org/v2/"
ZOTERO = "https://api.zotero.org"
ZOTERO_LOCAL = "http://127.0.0.1:23119/api"
#: bounds on output tokens of one call; no existing model writes more
MIN_TOKENS, MAX_TOKENS = 64, 200_000


@dataclass(frozen=True, kw_only=True, slots=True)
class ReaderOptions:
    """How the offline reader scores sentences."""

    #: ``cross-encoder``, if its weights are installed, or ``late`` interaction
    method: ReaderMethod = "cross-encoder"
    #: maximum tokens of passages that the cross-encoder reads for a question
    tokens: int = READ
    #: maximum predicted seconds of a call; ``None``: no limit
    seconds: float | None = None


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


def lower(value: object) -> object:
    """Return a text in lower case, any other value as it is."""
    return value.lower() if isinstance(value, str) else value


def known_policy(policy: str) -> str:
    """Return a policy that exists.

    Raises:
        PydanticCustomError: there is no such policy, or one of its settings is invalid.
    """
    if policy == DEFAULT_POLICY:
        # commands that decide nothing need not wait for NumPy
        return policy
    from policies.specs import parse

    try:
        parse(policy)
    except InvalidQuery as error:
        raise PydanticCustomError("policy", "{said}", {"said": error.message}) from None
    return policy


def an_effort(asked: str | None) -> str | None:
    """Return an effort that :func:`~posology.llm.models.effort.parse_effort` takes; ``None``: none is set.

    Raises:
        PydanticCustomError: a level or a stage is unknown.
    """
    if asked is not None:
        from posology.llm.models.effort import parse_effort

        try:
            parse_effort(asked)
        except InvalidQuery as error:
            raise PydanticCustomError("effort", "{said}", {"said": error.message}) from None
    return asked


def named_models(text: str) -> str:
    """Return a text that :func:`models` can read.

    Raises:
        PydanticCustomError: it cannot.
    """
    models(text)
    return text


def models(text: str) -> Mapping[str, str]:
    """Read the models of compressors, by the compressor's name: ``provence=DIR,summarization=DIR``.

    Raises:
        PydanticCustomError: the text is not such a list.
    """
    return _pairs(text, "MODEL")


def named_collections(text: str) -> str:
    """Return a text that :func:`collections` can read.

    Raises:
        PydanticCustomError: it cannot.
    """
    for name in collections(text):
        if name == "none" or not re.fullmatch(COLLECTION, name):
            raise PydanticCustomError(
                "collections",
                "a name has lower-case letters, digits, - and _, and is not none: {name}",
                {"name": name},
            )
    return text


def collections(text: str) -> Mapping[str, str]:
    """Read the places of collections by name: ``trials=DIR,guidelines=s3://…``.

    Raises:
        PydanticCustomError: the text is not such a list.
    """
    return _pairs(text, "PLACE")


def _pairs(text: str, value: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, given = (part.strip() for part in item.partition("="))
        if not equals or not name or not given or name in found:
            raise PydanticCustomError(
                "pairs",
                "write NAME={value}, each name once, separated by commas: {item}",
                {"value": value, "item": item},
            )
        found[name] = given
    return found


def known_networks(text: str) -> str:
    """Return a text that :func:`networks` can read.

    Raises:
        PydanticCustomError: it cannot.
    """
    try:
        networks(text)
    except ValueError as error:
        raise PydanticCustomError(
            "networks",
            "write networks such as 10.1.0.0/16, separated by commas: {said}",
            {"said": str(error)},
        ) from None
    return text


def networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    """Return networks that are separated by commas.

    Raises:
        ValueError: one is none.
    """
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())


def off(value: object) -> object:
    """Return ``None`` for ``off`` and ``none``, any other value as it is."""
    # an empty variable counts as not set, so there must be a word for "do not count it"
    return None if isinstance(value, str) and value.strip().lower() in ("off", "none") else value
