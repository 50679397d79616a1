"""A tenant's limits: validation, and their form in Redis."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import fields
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from posology.budget.ledger.base import MAX_CAP, NANO, dollars, nano
from posology.errors import InvalidLimit, UnknownModel
from posology.llm.models.names import parse
from posology.llm.providers.table import PROVIDERS
from posology.types import Limits
from posology.types.money import COLLECTION

#: maximum of a limit on calls, requests or tokens
MAX_COUNT = 1_000_000_000
MAX_MODELS = 100
#: maximum characters of a model's name
MAX_NAME = 200
#: names of all limits
FIELDS = tuple(field.name for field in fields(Limits))
MONEY = ("day", "month", "total", "job")
#: removes a limit
NONE = "none"
_PERMISSION = "may_ingest"
_COLLECTIONS = "collections"
MAX_COLLECTIONS = 1_000
#: limits that are names, which bars separate in the record
_LISTS = ("models", _COLLECTIONS)
#: limit → its field in the record
COUNTS: Mapping[str, str] = MappingProxyType(
    {
        "calls": "calls",
        "requests_per_minute": "rpm",
        "tokens_per_minute": "tpm",
        "queued": "queued",
        "stored": "stored",
    }
)
_AMOUNT = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?", re.ASCII)
_COUNT = re.compile(r"[0-9]{1,12}", re.ASCII)


def amount(text: str, field: str) -> Decimal:
    """Parse dollars: digits, with at most nine decimals.

    Raises:
        InvalidLimit: the text has another form.
    """
    if not _AMOUNT.fullmatch(text):
        raise _no_amount(text, field)
    return Decimal(text)


def number(text: str, field: str) -> int:
    """Parse a count.

    Raises:
        InvalidLimit: the text has another form.
    """
    if not _COUNT.fullmatch(text):
        raise _no_count(text, field)
    return int(text)


def parsed(texts: Mapping[str, str]) -> dict[str, Any]:
    """Parse limits of dollars and counts as a person writes them; `none`: no limit.

    Args:
        texts: by the limits' names.

    Raises:
        InvalidLimit: a text has another form.
    """
    found: dict[str, Any] = {}
    for name, text in texts.items():
        if text == NONE:
            found[name] = None
        else:
            found[name] = amount(text, name) if name in MONEY else number(text, name)
    return found


def check(limits: Limits) -> None:
    """Validate limits.

    A limit of 0 dollars allows free calls only. 0 concurrent calls would block every call for ever, so it is
    not allowed: disable the tenant instead.

    Raises:
        InvalidLimit: naming the first wrong limit.
        UnknownModel: an allowed model is unknown.
    """
    for name in MONEY:
        cap = getattr(limits, name)
        if cap is not None and not _sound(cap):
            raise _no_amount(str(cap), name)
    for name in COUNTS:
        count = getattr(limits, name)
        if count is not None and not (type(count) is int and 1 <= count <= MAX_COUNT):
            raise _no_count(str(count), name)
    if limits.models is not None:
        _check_models(limits.models)
    _check_collections(limits.collections)


def written(limits: Limits, names: Collection[str] = FIELDS) -> dict[str, str]:
    """Return the fields of the record for some limits; an empty field: no limit."""
    record = {}
    for name in names:
        value = getattr(limits, name)
        if value is None:
            text = ""
        elif name in _LISTS:
            text = f"|{'|'.join(value)}|" if value else ""
        elif name == _PERMISSION:
            text = "1" if value else ""
        else:
            text = str(nano(value) if name in MONEY else value)
        record[COUNTS.get(name, name)] = text
    return record


def read(record: Mapping[str, str]) -> Limits:
    """Return the limits of a record."""
    limits: dict[str, Any] = {}
    for name in FIELDS:
        text = record.get(COUNTS.get(name, name))
        if not text:
            continue
        if name in _LISTS:
            limits[name] = tuple(text.strip("|").split("|"))
        elif name == _PERMISSION:
            limits[name] = True
        else:
            limits[name] = dollars(text) if name in MONEY else int(text)
    return Limits(**limits)


def _sound(cap: object) -> bool:
    """Whether counters can represent an amount exactly."""
    if not isinstance(cap, Decimal) or not cap.is_finite() or not 0 <= cap <= MAX_CAP:
        return False
    return cap * NANO == nano(cap)


def _check_models(models: Collection[str]) -> None:
    if not 1 <= len(models) <= MAX_MODELS:
        raise InvalidLimit(
            f"models: allow 1 to {MAX_MODELS} (got {len(models)}); to forbid all, disable the tenant",
            field="models",
        )
    for model in models:
        provider, _, name = model.partition(":")
        # the record separates them by bars
        if "|" in model or len(model) > MAX_NAME or not model.isprintable() or " " in model:
            raise InvalidLimit(
                f"models: {model[:MAX_NAME]!r} is not a model's name: use provider:name, or provider:*",
                field="models",
            )
        if name != "*":
            parse(model)
        elif provider not in PROVIDERS:
            raise UnknownModel(
                f"unknown provider {provider!r}: use {', '.join(PROVIDERS)}", model=model
            )


def _check_collections(collections: Collection[str]) -> None:
    wrong = [name for name in collections if not re.fullmatch(COLLECTION, name)]
    if wrong or len(collections) > MAX_COLLECTIONS:
        got = repr(wrong[0][:MAX_NAME]) if wrong else f"{len(collections):,}"
        raise InvalidLimit(
            f"collections: grant at most {MAX_COLLECTIONS:,} names of lower-case letters, digits, - and _ (got {got})",
            field=_COLLECTIONS,
        )


def _no_amount(text: str, field: str) -> InvalidLimit:
    return InvalidLimit(
        f"{field} must be 0 to {MAX_CAP:,} dollars with at most 9 decimals (got {text[:50]!r})",
        field=field,
    )


def _no_count(text: str, field: str) -> InvalidLimit:
    return InvalidLimit(f"{field} must be 1 to {MAX_COUNT:,} (got {text[:50]!r})", field=field)
