"""A tenant's limits: checked, and as its record in Redis holds them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import fields
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from posology.budget.ledger.base import MAX_CAP, NANO, dollars, nano
from posology.errors import InvalidLimit, UnknownModel
from posology.llm.models import parse
from posology.llm.providers.table import PROVIDERS
from posology.types import Limits

#: calls, requests or tokens; more is a mistake
MAX_COUNT = 1_000_000_000
MAX_MODELS = 100
#: characters of a model's name
MAX_NAME = 200
#: the names of all limits
FIELDS = tuple(field.name for field in fields(Limits))
_MONEY = ("day", "month", "total", "job")
#: limit → its field in the record
_COUNTS: Mapping[str, str] = MappingProxyType(
    {"calls": "calls", "requests_per_minute": "rpm", "tokens_per_minute": "tpm"}
)
_AMOUNT = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?", re.ASCII)
_COUNT = re.compile(r"[0-9]{1,12}", re.ASCII)


def amount(text: str, field: str) -> Decimal:
    """Dollars as somebody writes them: digits, and at most nine after a point.

    Raises:
        InvalidLimit: it is something else.
    """
    if not _AMOUNT.fullmatch(text):
        raise _no_amount(text, field)
    return Decimal(text)


def number(text: str, field: str) -> int:
    """A count as somebody writes it.

    Raises:
        InvalidLimit: it is something else.
    """
    if not _COUNT.fullmatch(text):
        raise _no_count(text, field)
    return int(text)


def check(limits: Limits) -> None:
    """See whether limits can be such.

    A limit of 0 dollars lets nothing be spent that costs anything. 0 calls at once would keep every call
    waiting for ever, so that is no limit: a tenant is disabled instead.

    Raises:
        InvalidLimit: naming the first that cannot be.
        UnknownModel: a model that nobody has is allowed.
    """
    for name in _MONEY:
        cap = getattr(limits, name)
        if cap is not None and not _sound(cap):
            raise _no_amount(str(cap), name)
    for name in _COUNTS:
        count = getattr(limits, name)
        if count is not None and not (type(count) is int and 1 <= count <= MAX_COUNT):
            raise _no_count(str(count), name)
    if limits.models is not None:
        _check_models(limits.models)


def written(limits: Limits, names: Collection[str] = FIELDS) -> dict[str, str]:
    """The fields of the record for some limits; empty: no limit."""
    found = {}
    for name in names:
        value = getattr(limits, name)
        if value is None:
            text = ""
        elif name == "models":
            text = f"|{'|'.join(value)}|"
        else:
            text = str(nano(value) if name in _MONEY else value)
        found[_COUNTS.get(name, name)] = text
    return found


def read(record: Mapping[str, str]) -> Limits:
    """The limits that a record holds."""
    found: dict[str, Any] = {}
    for name in FIELDS:
        text = record.get(_COUNTS.get(name, name))
        if not text:
            continue
        if name == "models":
            found[name] = tuple(text.strip("|").split("|"))
        else:
            found[name] = dollars(text) if name in _MONEY else int(text)
    return Limits(**found)


def _sound(cap: object) -> bool:
    """Whether an amount is one that counters hold exactly."""
    if not isinstance(cap, Decimal) or not cap.is_finite() or not 0 <= cap <= MAX_CAP:
        return False
    return cap * NANO == nano(cap)


def _check_models(models: Collection[str]) -> None:
    if not 1 <= len(models) <= MAX_MODELS:
        raise InvalidLimit(
            f"models: allow 1 to {MAX_MODELS}; to let nothing be spent, disable the tenant",
            field="models",
        )
    for model in models:
        provider, _, name = model.partition(":")
        # the record separates them by bars
        if "|" in model or len(model) > MAX_NAME or not model.isprintable() or " " in model:
            raise InvalidLimit(
                f"models: {model[:MAX_NAME]!r} is no model's name: write provider:name, or provider:*",
                field="models",
            )
        if name != "*":
            parse(model)
        elif provider not in PROVIDERS:
            raise UnknownModel(
                f"unknown provider {provider!r}: use {', '.join(PROVIDERS)}", model=model
            )


def _no_amount(text: str, field: str) -> InvalidLimit:
    return InvalidLimit(
        f"{field}: {text[:50]!r} is no limit: write dollars from 0 to {MAX_CAP:,}, with at most 9 digits "
        "after the point",
        field=field,
    )


def _no_count(text: str, field: str) -> InvalidLimit:
    return InvalidLimit(
        f"{field}: {text[:50]!r} is no limit: write a number from 1 to {MAX_COUNT:,}", field=field
    )
