"""Published forms: complete, stable as JSON, and without internal types."""

from __future__ import annotations

import ast
import json
import pkgutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from decimal import Decimal, InvalidOperation
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import TypeAdapter

from posology import published
from posology.described import texts
from posology.published.answers import AskOutput
from posology.published.base import Published, descriptions
from posology.published.calls import AttemptOutput
from posology.published.decisions import DecisionOutput
from posology.types import (
    Attempt,
    Decision,
    Dose,
    Offer,
    Outcome,
    PromptId,
    Stage,
    Usage,
)
from tests.support.held import held_after

MODULES = [
    import_module(f"{published.__name__}.{found.name}")
    for found in pkgutil.iter_modules(published.__path__)
]
FORMS = sorted(
    {
        form
        for module in MODULES
        for form in vars(module).values()
        if isinstance(form, type) and issubclass(form, Published)
    },
    key=lambda form: form.__name__,
)
AMOUNTS = [(form, name) for form in FORMS for name in form.model_fields if name.endswith("_usd")]
USAGE = Usage(input=3, cache_read=2, output=1, reasoning=5)
DOSE = Dose(strategy="direct", rungs=(2, 4), keep=0.5, escalate=True)
DECISION = Decision(
    dose=DOSE,
    policy="router",
    reason="why",
    features={"a.b": 0.5, "c": True, "d": None},
    steps=("one",),
    remaining=Decimal("0.000001"),
    offers=(Offer(dose=DOSE, worst=Decimal("1E-9"), fits=False),),
    versions={"index": "i@1"},
)
PAIRS: list[tuple[Any, type[Published]]] = [
    (DECISION, DecisionOutput),
    (Decision(dose=DOSE, policy="p", reason="r", then=DECISION), DecisionOutput),
    (
        Attempt(
            id="a",
            call=1,
            attempt=2,
            stage=Stage.ANSWER,
            model="openai:x",
            prompt=PromptId(name="answer", digest="00"),
            outcome=Outcome.OK,
            error=None,
            usage=USAGE,
            cost=Decimal("1E-7"),
            started=1.5,
            latency=0.25,
            request_id=None,
            reserved=Decimal("0.10"),
        ),
        AttemptOutput,
    ),
]


def _amounts(found: Any) -> Any:
    """Return a JSON value with its strings of digits as amounts: 1E-7 is 0.0000001."""
    if isinstance(found, dict):
        return {name: _amounts(value) for name, value in found.items()}
    if isinstance(found, list):
        return [_amounts(value) for value in found]
    if isinstance(found, str):
        with suppress(InvalidOperation):
            return Decimal(found)
    return found


@pytest.mark.parametrize(("form", "name"), AMOUNTS)
def test_no_amount_is_a_power_of_ten(form: type[Published], name: str) -> None:
    made = form.model_construct(None, **{name: Decimal("1E-9")})
    assert json.loads(made.model_dump_json(include={name})) == {name: "0.000000001"}


@pytest.mark.parametrize(("value", "form"), PAIRS)
def test_a_published_form_is_the_json_of_its_value_and_leads_back(
    value: Any, form: type[Published]
) -> None:
    made = form.of(value)
    assert _amounts(json.loads(made.model_dump_json())) == _amounts(
        json.loads(TypeAdapter(type(value)).dump_json(value))
    )
    assert made.to(type(value)) == value
    assert form.model_validate_json(made.model_dump_json()) == made


def types_in(annotation: Any) -> Iterator[Any]:
    yield annotation
    for part in get_args(annotation):
        yield from types_in(part)


@pytest.mark.parametrize("form", FORMS)
def test_dataclasses_in_forms_are_described(form: type[Published]) -> None:
    for field in form.model_fields.values():
        for kind in types_in(field.annotation):
            if isinstance(kind, type) and is_dataclass(kind):
                properties = TypeAdapter(kind).json_schema()["properties"]
                assert [*texts(kind)] == [*properties] == [one.name for one in fields(kind)]
                assert {name: one["description"] for name, one in properties.items()} == texts(kind)


def test_a_dataclass_has_one_definition_however_often_it_is_held() -> None:
    definitions = AskOutput.model_json_schema()["$defs"]
    assert definitions["UsageOutput"]["title"] == "UsageOutput"
    assert "Usage" not in definitions


@pytest.mark.parametrize("form", FORMS)
def test_every_field_is_described(form: type[Published]) -> None:
    described = descriptions(form)
    properties = form.model_json_schema()["properties"]
    for name, field in form.model_fields.items():
        text = field.description or described.get(name, "")
        assert text, name
        assert properties[field.alias or name]["description"] == text, name
        assert "``" not in text, name
        assert ":class:" not in text, name


def test_published_forms_know_nothing_above_the_types() -> None:
    for module in MODULES:
        assert module.__file__ is not None
        for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("posology"):
                assert (node.module or "").startswith(
                    ("posology.published", "posology.types", "posology.described")
                )


def test_values_that_are_new_each_time_leave_nothing_in_memory() -> None:
    decision = DecisionOutput.of(DECISION)
    each = [
        decision.model_copy(update={"reason": f"Money: ${number} are left."}).model_dump_json()
        for number in range(2_000)
    ]
    DecisionOutput.model_validate_json(each[0])

    def read() -> None:
        for one in each:
            DecisionOutput.model_validate_json(one)

    held = held_after(read)
    # kept, each reason would take 80 bytes or more
    assert held < 20_000
