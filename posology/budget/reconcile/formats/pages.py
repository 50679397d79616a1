"""JSON pages of the providers' reports: one or several in a file, as ``curl`` or ``jq -s`` leaves them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from posology.budget.reconcile.formats import anthropic, openai
from posology.budget.reconcile.formats.values import Bad
from posology.budget.reconcile.measures import Kind
from posology.budget.reconcile.rows import Row
from posology.errors import BadFile, BadRecord

#: modules of the providers
_PROVIDERS = (openai, anthropic)


def _constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=_constant)


def decode(text: str) -> Any:
    """Return a JSON value with exact fractions.

    Raises:
        ValueError: it is none.
    """
    value, end = _raw(text, 0)
    if text[end:].strip():
        raise ValueError("more than one value")
    return value


def read(text: str, path: str) -> tuple[str, list[Row]]:
    """Return the provider and the rows of its pages. An empty page means no usage.

    Raises:
        BadFile: it is no page of a provider's report.
        BadRecord: a bucket of it cannot be read; naming the line on which its page begins.
    """
    rows: list[Row] = []
    idle: list[tuple[float, float]] = []
    found: Any = None
    for line, bucket, place in _buckets(text, path):
        module = next((m for m in _PROVIDERS if m.is_bucket(bucket)), None)
        if module is None or found not in (None, module):
            reason = "buckets of two providers" if module else "no bucket of a usage or cost report"
            raise BadFile(f"{place}: {reason}", path=path, line=line)
        found = module
        try:
            for row in module.of_bucket(bucket):
                if isinstance(row, Row):
                    rows.append(row)
                else:
                    idle.append(row)
        except Bad as error:
            raise BadRecord(f"{place}.{error}", path=path, line=line) from None
    if found is None:
        raise BadFile("it has no buckets: export a longer period", path=path)
    kind = rows[0].kind if rows else Kind.USAGE
    rows += [
        Row(provider=found.PROVIDER, kind=kind, start=start, end=end, model=None, figures={})
        for start, end in idle
    ]
    return found.PROVIDER, rows


def _buckets(text: str, path: str) -> Iterator[tuple[int, Mapping[str, Any], str]]:
    for line, value in _values(text, path):
        for place, page in _each(value):
            if not isinstance(page, dict):
                raise BadFile(f"{place or 'it'} is not a page of a report", path=path, line=line)
            if "error" in page:
                raise BadFile(
                    f"an error of the provider, not a report: {_message(page['error'])}",
                    path=path,
                    line=line,
                )
            data = page.get("data")
            if data is None and ("results" in page or "result" in page):
                yield line, page, place or "bucket"
                continue
            if not isinstance(data, list):
                raise BadFile("not a page of a usage or cost report", path=path, line=line)
            for number, bucket in enumerate(data):
                where = f"{place}data[{number}]"
                if not isinstance(bucket, dict):
                    raise BadFile(f"{where} is not a bucket", path=path, line=line)
                yield line, bucket, where


def _each(value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, list):
        yield "", value
        return
    for number, page in enumerate(value):
        yield f"[{number}].", page


def _values(text: str, path: str) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        line = text.count("\n", 0, at) + 1
        try:
            value, at = _raw(text, at)
        except ValueError as error:
            raise BadFile(f"not JSON: {error}", path=path, line=line) from None
        yield line, value


def _raw(text: str, at: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ArithmeticError:
        raise ValueError("a number out of range") from None


def _message(error: Any) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    return " ".join(str(message).split())[:200]
