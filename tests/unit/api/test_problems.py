from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from orchestrator.api import problems
from posology import errors
from posology.errors import PosologyError


def _all(kind: type[PosologyError]) -> Iterator[type[PosologyError]]:
    yield kind
    for child in kind.__subclasses__():
        if child.__module__.startswith(errors.__name__):
            yield from _all(child)


KINDS = [kind for kind in _all(PosologyError) if kind is not PosologyError]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_has_a_status(kind: type[PosologyError]) -> None:
    status = problems.status_of(kind)
    assert status is not None
    assert 400 <= status < 600


def test_what_the_caller_can_mend_is_below_500() -> None:
    for kind in KINDS:
        status = problems.status_of(kind)
        assert status is not None
        mendable = issubclass(
            kind,
            errors.InputError
            | errors.JobError
            | errors.UnknownModel
            | errors.UnpricedModel
            | errors.PromptsMismatch
            | errors.VersionGone
            | errors.PassageNotFound
            | errors.BudgetError
            | errors.TenantError
            | errors.KeyRefused,
        )
        # what is merely held comes free by itself
        waits = issubclass(kind, errors.HeadroomReserved)
        assert (status < 500) == (mendable and not waits), kind


def test_an_error_on_our_side_is_told_without_its_message() -> None:
    secret = errors.StoreUnavailable("redis://10.0.0.7 is away", address="redis://10.0.0.7")
    reply = problems.of_error(secret)
    assert reply.status_code == 503
    assert reply.headers["retry-after"]
    assert b"10.0.0.7" not in bytes(reply.body)
    assert b"urn:uuid:" in bytes(reply.body)
    assert problems.of_error(errors.MissingKey(variable="OPENAI_API_KEY")).status_code == 500
    assert b"OPENAI" not in bytes(
        problems.of_error(errors.MissingKey(variable="OPENAI_API_KEY")).body
    )


def test_what_utf8_cannot_write_is_written_in_ascii() -> None:
    reply = problems.of_error(errors.InvalidQuery("no \ud800", field="\udfff"))
    assert b"\\ud800" in bytes(reply.body)
    assert b"\\udfff" in bytes(reply.body)


def test_times_of_a_problem_have_the_form_of_every_other_reply() -> None:
    at = datetime(2026, 11, 24, tzinfo=UTC)
    for given in (at, at.astimezone(timezone(timedelta(hours=9)))):
        error = errors.BudgetExhausted(
            "the day's budget is spent",
            scope="day",
            cap=Decimal("1.50"),
            spent=Decimal(1),
            reserved=Decimal(0),
            asked=Decimal("0.6"),
            resets=given,
        )
        told = json.loads(bytes(problems.of_error(error).body))
        assert told["resets"] == "2026-11-24T00:00:00Z"
        assert told["cap"] == "1.5"


@pytest.mark.parametrize(("name", "value"), [("wait", "abc"), ("state", "foo")])
def test_a_wrong_parameter_is_titled_so(name: str, value: str) -> None:
    found: Sequence[Any] = [{"loc": ("query", name), "msg": f"{value} is none", "type": "enum"}]
    told = json.loads(bytes(problems.of_validation(found).body))
    assert told["title"] == "A field or parameter of the request is wrong"
    assert told["field"] == name
