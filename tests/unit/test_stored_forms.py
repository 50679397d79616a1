"""Later versions publish all that an earlier one of the same major version did: ``docs/reference/stability.md``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from posology.version import __version__
from tests.stored.dump import FOLDER
from tests.stored.forms import current, forms_of, losses, read

STORED = sorted(FOLDER.glob(f"{__version__.partition('.')[0]}.*-forms.txt"))


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_nothing_is_lost_or_narrowed(path: Path) -> None:
    assert list(losses(read(path), current())) == []


def api(*, asks: Any = None, replies: Any = None, path: str = "/v1/a", **parameter: Any) -> Any:
    """An API with one operation."""
    operation = {
        "parameters": [{"in": "query", "name": "k", "schema": {"type": "integer"}, **parameter}],
        "requestBody": {"content": {"json": {"schema": {"$ref": "#/components/schemas/Ask"}}}},
        "responses": {"200": {"content": {"json": {"schema": {"$ref": "#/components/schemas/Out"}}}}},
    }  # fmt: skip
    schemas = {"Ask": thing(**(asks or {})), "Out": thing(**(replies or {}))}
    return {"paths": {path: {"post": operation}}, "components": {"schemas": schemas}}


def thing(**given: Any) -> Any:
    """A schema of an object: its fields, of which those with a description are required."""
    own = {"a": {"type": "string"}, "b": {"enum": ["x", "y"]}, "n": {"type": "integer"}}
    fields: dict[str, Any] = {k: field for k, field in (own | given).items() if field is not None}
    needed = [name for name, field in fields.items() if "description" in field]
    return {"type": "object", "properties": fields, "required": needed}


MUST = {"type": "string", "description": "It is required."}
FREE = {"type": "string"}
NUMBER = {"type": "integer", "maximum": 10, "minimum": 1}


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        # a field, a parameter, a route
        (api(), api(asks={"a": None}), ["request Ask.a: gone"]),
        (api(), api(replies={"a": None}), ["reply Out.a: gone"]),
        (api(), api(name="l"), ["request POST /v1/a.query:k: gone"]),
        (api(), api(asks={"c": FREE}, replies={"c": MUST}), []),
        # what must be given, and what is always there
        (api(), api(asks={"c": MUST}), ["request Ask.c: new, and required"]),
        (api(asks={"a": FREE}), api(asks={"a": MUST}), ["request Ask.a: now !"]),
        (api(asks={"a": MUST}), api(asks={"a": FREE}), []),
        (api(replies={"a": MUST}), api(replies={"a": FREE}), ["reply Out.a: no longer !"]),
        (api(replies={"a": FREE}), api(replies={"a": MUST}), []),
        (api(), api(required=True), ["request POST /v1/a.query:k: now !"]),
        # values
        (api(), api(asks={"b": {"enum": ["x"]}}), ['request Ask.b: no longer "y"']),
        (api(), api(replies={"b": {"enum": ["x"]}}), ['reply Out.b: no longer "y"']),
        (api(), api(asks={"b": {"enum": ["x", "y", "z"]}}), []),
        (api(), api(asks={"b": FREE}), []),
        # types
        (api(), api(asks={"n": {"type": "number"}}), []),
        (api(), api(replies={"n": {"type": "number"}}), ["reply Out.n: no longer integer"]),
        (api(), api(replies={"a": {"type": ["string", "null"]}}), ["reply Out.a: now null"]),
        (api(), api(asks={"a": {"anyOf": [FREE, {"type": "null"}]}}), []),
        (api(asks={"a": {"type": "array", "items": FREE}}),
         api(asks={"a": {"type": "array", "items": NUMBER}}),
         ["request Ask.a[]: no longer string"] + [f"request Ask.a[]: now {one}" for one in ("maximum=10", "minimum=1")]),
        # limits, of requests alone
        (api(asks={"n": NUMBER}), api(asks={"n": NUMBER | {"maximum": 9}}), ["request Ask.n: now maximum=9"]),
        (api(asks={"n": NUMBER}), api(asks={"n": NUMBER | {"maximum": 11, "minimum": 0}}), []),
        (api(asks={"n": NUMBER}), api(), []),
        (api(), api(replies={"n": NUMBER}), []),
    ],
)  # fmt: skip
def test_what_is_a_loss(old: Any, new: Any, lost: list[str]) -> None:
    assert list(losses(forms_of(old, {}), forms_of(new, {}))) == lost


def test_a_route_and_an_output_that_are_gone_are_named() -> None:
    old = forms_of(api(), {"ask": thing()})
    new = forms_of(api(path="/v1/b"), {})
    lost = list(losses(old, new))
    assert {"POST /v1/a: gone", "printed ask: gone", "printed ask.a: gone"} <= {*lost}
    assert not [line for line in lost if "Ask" in line or "/v1/b" in line]
