from __future__ import annotations

import contextlib
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.budget.ledger.base import MAX_CAP, NANO
from posology.budget.tenants.limits import (
    MAX_COUNT,
    MAX_MODELS,
    amount,
    check,
    number,
    read,
    written,
)
from posology.errors import InvalidLimit, UnknownModel
from posology.types import Limits

caps = st.none() | st.integers(0, int(MAX_CAP) * NANO).map(lambda n: Decimal(n) / NANO)
counts = st.none() | st.integers(1, MAX_COUNT)
models = st.none() | st.lists(
    st.sampled_from(["openai:*", "openai:gpt-4o-mini", "anthropic:*", "openai:ft:gpt-4o:me::1"]),
    min_size=1,
).map(tuple)
limits = st.builds(
    Limits,
    day=caps,
    month=caps,
    total=caps,
    job=caps,
    models=models,
    calls=counts,
    requests_per_minute=counts,
    tokens_per_minute=counts,
    queued=counts,
    stored=counts,
    may_ingest=st.booleans(),
    collections=st.lists(st.sampled_from(["trials", "guidelines-2026", "a_b"])).map(tuple),
)


@given(limits)
def test_what_is_written_is_read(found: Limits) -> None:
    check(found)
    record = written(found)
    assert read(record) == found
    # Redis drops what is empty
    assert read({name: text for name, text in record.items() if text}) == found


@given(limits)
def test_the_record_is_what_the_scripts_read(found: Limits) -> None:
    record = written(found)
    assert set(record) == {
        "day",
        "month",
        "total",
        "job",
        "models",
        "calls",
        "rpm",
        "tpm",
        "queued",
        "stored",
        "may_ingest",
        "collections",
    }
    if found.day is not None:
        # digits alone, exact as a Lua number
        assert record["day"].isdecimal()
        assert float(record["day"]) == int(record["day"]) == found.day * NANO
    if found.models is not None:
        assert all(f"|{model}|" in record["models"] for model in found.models)


def test_only_what_is_named_is_written() -> None:
    assert written(Limits(day=Decimal(1)), ("day", "calls")) == {"day": "1000000000", "calls": ""}


BAD: list[tuple[str, Any]] = [
    *((scope, value) for scope in ("day", "month", "total", "job") for value in (
        Decimal(-1), Decimal("-0.000000001"), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"),
        Decimal("1e400"), MAX_CAP + Decimal("0.000000001"), Decimal("0.0000000001"), 1, 1.0, "1",
    )),
    *((name, value) for name in ("calls", "requests_per_minute", "tokens_per_minute", "queued", "stored") for value in (
        0, -1, True, 1.0, "1", MAX_COUNT + 1,
    )),
    *(("models", value) for value in (
        (), ("openai:*",) * (MAX_MODELS + 1), ("openai:a|anthropic:b",), ("openai:a b",), ("openai:a\n",),
        ("openai:" + "a" * 200,), ("openai:\x1b",),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value"), BAD, ids=lambda value: repr(value)[:30])
def test_what_cannot_be_a_limit_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(InvalidLimit) as caught:
        check(Limits(**{field: value}))
    assert caught.value.field == field
    assert field in str(caught.value)
    assert len(str(caught.value)) < 400
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("model", ["gpt-4o", "nobody:x", "nobody:*", ":*", "openai:", "offline:x"])
def test_what_is_no_model_is_not_allowed(model: str) -> None:
    with pytest.raises(UnknownModel):
        check(Limits(models=(model,)))


def test_the_ends_are_limits() -> None:
    check(Limits(day=Decimal(0), total=MAX_CAP, job=Decimal("0.000000001"), calls=1))
    # what it says, not how it is said
    check(Limits(day=Decimal("1.5000000000000"), month=Decimal("1E+3")))


@pytest.mark.parametrize(
    "text",
    ["", "-1", "+1", "nan", "inf", "1e400", "1e3", "0.0000000001", ".5", "5.", "1,5", "1_0", " 1", "1\n", "$1",
     "٣", "1" * 13, "0x1"],
)  # fmt: skip
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(InvalidLimit, match="day"):
        check(Limits(day=amount(text, "day")))


@pytest.mark.parametrize("text", ["", "-1", "1.0", "1e3", "٣", " 1", "1" * 13, "many"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(InvalidLimit, match="calls"):
        number(text, "calls")


def test_what_is_written_by_hand_is_exact() -> None:
    assert amount("0.123456789", "day") == Decimal("0.123456789")
    assert amount("007", "day") == 7
    assert number("10", "calls") == 10


@given(st.text(max_size=20))
def test_no_text_is_more_than_refused(text: str) -> None:
    for reads in (amount, number):
        with contextlib.suppress(InvalidLimit):
            reads(text, "day")
