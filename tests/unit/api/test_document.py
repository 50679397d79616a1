"""The OpenAPI document: complete, with examples that are valid, and the one that is published."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from orchestrator.api.app import create_app
from orchestrator.settings import Settings

DOCS = Path(__file__).resolve().parents[3] / "docs"
DOCUMENT = create_app(Settings()).openapi()
OPERATIONS = [
    (method.upper(), path, operation)
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
]


def named(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def test_the_published_document_is_this_one() -> None:
    published = json.loads((DOCS / "openapi.json").read_text(encoding="utf-8"))
    assert published == json.loads(json.dumps(DOCUMENT)), "run python -m orchestrator.api.documents"


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS, ids=named)
def test_every_operation_is_documented(method: str, path: str, operation: dict[str, Any]) -> None:
    assert operation["operationId"]
    assert operation["summary"]
    assert operation["description"]
    openai = operation["tags"] == ["openai"]
    assert {"400" if openai else "422", "500", "503"} <= set(operation["responses"])
    if method == "POST" and "requestBody" in operation:
        assert {"400", "413", "415"} <= set(operation["responses"])
    if "{" in path:
        assert "404" in operation["responses"]
    for status, response in operation["responses"].items():
        if int(status) >= 400:
            media = "application/json" if openai else "application/problem+json"
            assert list(response["content"]) == [media]
    assert len({op["operationId"] for _, _, op in OPERATIONS}) == len(OPERATIONS)


def _contents() -> Iterator[tuple[str, dict[str, Any]]]:
    for method, path, operation in OPERATIONS:
        for media, content in operation.get("requestBody", {}).get("content", {}).items():
            yield f"{method} {path} body {media}", content
        for status, response in operation["responses"].items():
            for media, content in response.get("content", {}).items():
                yield f"{method} {path} {status} {media}", content


@pytest.mark.parametrize(("where", "content"), list(_contents()), ids=named)
def test_every_example_is_valid(where: str, content: dict[str, Any]) -> None:
    examples = [e["value"] for e in content.get("examples", {}).values()]
    examples += [content["example"]] if "example" in content else []
    assert examples, where
    schema = {**content["schema"], "components": DOCUMENT["components"]}
    for example in examples:
        jsonschema.Draft202012Validator(schema).validate(example)
        if "problem+json" in where:
            assert str(example["status"]) == where.split()[2]


def described(node: Any, where: str = "") -> Iterator[tuple[str, str | None]]:
    """Yield every parameter, header and property with its description, and every other description."""
    if isinstance(node, list):
        for place, item in enumerate(node):
            yield from described(item, f"{where}/{place}")
    if not isinstance(node, dict):
        return
    for name, value in node.items():
        here = f"{where}/{name}"
        if name in ("example", "examples"):
            continue
        if name in ("properties", "headers"):
            for key, property_ in value.items():
                yield f"{here}/{key}", property_.get("description")
        elif name == "parameters":
            for parameter in value:
                yield f"{here}/{parameter['name']}", parameter.get("description")
        elif name == "description" and isinstance(value, str):
            yield here, value
        yield from described(value, here)


def test_everything_is_described_without_markup_of_python() -> None:
    found = list(described(DOCUMENT))
    assert len(found) > 300
    assert not [where for where, text in found if not text]
    markup = re.compile(r"``|:(class|func|meth|data|mod|attr|exc):`")
    assert not [where for where, text in found if text and markup.search(text)]
