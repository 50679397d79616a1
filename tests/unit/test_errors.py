from __future__ import annotations

import pickle
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from posology import errors
from posology.errors import BadRecord, PosologyError, ProviderError, RateLimited
from posology.types import Usage


def _all(kind: type[PosologyError]) -> Iterator[type[PosologyError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _all(child)


FIELDS: dict[str, object] = {
    "field": "text",
    "reason": "no id",
    "path": "a.jsonl",
    "line": 3,
    "model": "openai:x",
    "variable": "OPENAI_API_KEY",
    "embedder": "minilm",
    "device": "cuda:1",
    "index": "dir",
    "passage": "pmid:1",
    "provider": "openai",
    "service": "pubmed",
    "status": 429,
    "request_id": "r1",
    "retry_after": 1.5,
    "usage": Usage(input=3),
    "seconds": 2.0,
    "failures": {"provider": 2},
    "job": "job_1",
    "pid": 7,
    "api": "http://127.0.0.1:8000",
    "child": "worker1",
    "lines": ("the index is missing",),
    "batch": "batch_1",
    "ingest": "ingest_1",
    "watch": "watch_1",
    "webhook": "wh_1",
    "table": "table_1",
    "key": "models",
    "address": "redis://127.0.0.1:6379/0",
    "scope": "day",
    "cap": Decimal("0.45"),
    "spent": Decimal("0.4"),
    "reserved": Decimal(0),
    "asked": Decimal("0.1"),
    "resets": datetime(2026, 1, 16, tzinfo=UTC),
    "place": 2,
    "partitions": 6,
    "remaining": Decimal("0.001"),
    "cheapest": Decimal("0.0012"),
    "tenant": "acme",
    "tokens": 5000,
    "limit": 1000,
    "allowed": 1000,
    "used": 999,
    "drift": Decimal("0.25"),
    "drifting": 2,
    "changed": 3,
    "failed": 1,
    "policy": "qtable",
    "prompts": "0123456789abcdef",
    "files": ("pubmed26n0002.xml.gz",),
    "version": 17,
    "days": 30.0,
    "shard": "0f3a",
    "tries": 3,
    "queue": "posology.ingest",
    "collection": "trials",
    "package": "pypdfium2",
}


def _make(kind: type[PosologyError]) -> PosologyError:
    import inspect

    wanted = inspect.signature(kind.__init__).parameters
    given = {name: value for name, value in FIELDS.items() if name in wanted}
    if "message" in wanted:
        return kind("do this", **given)
    if kind.__name__ in ("BadRecord", "BadFile", "BadPrices", "BadArtefact"):
        return kind(given.pop("reason"), **given)  # type: ignore[arg-type]  # made by signature
    return kind(**given)  # type: ignore[arg-type]  # made by signature


@pytest.mark.parametrize("kind", list(_all(PosologyError)), ids=lambda kind: kind.__name__)
def test_every_error_survives_pickling_with_its_fields(kind: type[PosologyError]) -> None:
    error = _make(kind)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert str(copy) == str(error) != ""
    assert copy.details == error.details
    for name, value in error.details.items():
        assert getattr(copy, name) == value


@pytest.mark.parametrize("kind", list(_all(PosologyError)), ids=lambda kind: kind.__name__)
def test_the_tree_in_the_docstring_is_the_tree(kind: type[PosologyError]) -> None:
    assert errors.__doc__ is not None
    line = next(ln for ln in errors.__doc__.splitlines() if kind.__name__ in ln.split())
    depth = (line.index(kind.__name__) - 4) // 4 if kind is not PosologyError else 0
    assert depth == kind.__mro__.index(PosologyError)


def test_messages_say_where() -> None:
    assert str(BadRecord("no id", path="a.jsonl", line=3)) == "a.jsonl:3: no id"


def test_numbers_are_fields() -> None:
    error = RateLimited("wait", provider="openai", model="openai:x", retry_after=2.5)
    assert error.retry_after == 2.5
    assert error.status is None
    assert isinstance(error, ProviderError)


def test_families_have_exit_codes_of_their_own() -> None:
    families = [kind.exit_code for kind in PosologyError.__subclasses__()]
    assert len(set(families)) == len(families)
    assert not {0, 1, 2} & set(families)
