"""What is published as JSON."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from posology.published import answers, decisions, estimates, jobs, money, tenants
from posology.published.answers import Published

FORMS = [
    form
    for module in (answers, decisions, estimates, jobs, money, tenants)
    for form in vars(module).values()
    if isinstance(form, type) and issubclass(form, Published)
]
AMOUNTS = [(form, name) for form in FORMS for name in form.model_fields if name.endswith("_usd")]


@pytest.mark.parametrize(("form", "name"), AMOUNTS)
def test_no_amount_is_a_power_of_ten(form: type[Published], name: str) -> None:
    made = form.model_construct(None, **{name: Decimal("1E-9")})
    assert json.loads(made.model_dump_json(include={name})) == {name: "0.000000001"}
