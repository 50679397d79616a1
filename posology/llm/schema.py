"""Pydantic's JSON schema in the dialect that OpenAI's strict mode accepts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel

#: keywords that strict mode does not support; pydantic checks the reply anyway
_DROPPED = frozenset(
    {
        "contains",
        "default",
        "deprecated",
        "discriminator",
        "examples",
        "maxContains",
        "maxLength",
        "maxProperties",
        "minContains",
        "minLength",
        "minProperties",
        "readOnly",
        "uniqueItems",
        "writeOnly",
    }
)
#: keywords that contain schemas, as maps and as lists
_MAPS = ("properties", "$defs")
_LISTS = ("anyOf", "allOf")


@dataclass(frozen=True, kw_only=True, slots=True)
class ResponseSchema:
    """A schema to send with a request."""

    #: letters, digits, ``_`` and ``-``, at most 64
    name: str
    schema: dict[str, Any]
    #: whether the provider can enforce it strictly
    strict: bool


class _NotStrict(Exception):
    """The schema needs a feature that strict mode lacks."""


def response_schema(model: type[BaseModel]) -> ResponseSchema:
    """Return the schema of a reply.

    Strict mode requires every object closed (``additionalProperties: false``) and every property
    required, no keyword beside a ``$ref``, and has no free-form objects or values; see OpenAI's
    guide *Structured model outputs*, section *Supported schemas*. A model that needs more, such as
    one with a ``dict`` field, is sent as pydantic writes it and not enforced.
    """
    name = re.sub(r"[^A-Za-z0-9_-]", "_", model.__name__)[:64]
    plain = model.model_json_schema()
    try:
        strict = _strict(plain)
        if strict.get("type") != "object":
            raise _NotStrict
    except _NotStrict:
        return ResponseSchema(name=name, schema=plain, strict=False)
    return ResponseSchema(name=name, schema=strict, strict=True)


def _strict(node: Any) -> dict[str, Any]:
    if not isinstance(node, dict):
        raise _NotStrict
    if "$ref" in node:
        kept = {"$ref": node["$ref"]}
        return kept | {"$defs": _each(node["$defs"])} if "$defs" in node else kept
    result = {key: value for key, value in node.items() if key not in _DROPPED}
    if "oneOf" in result:
        result["anyOf"] = result.pop("oneOf")
    if len(result.get("allOf", ())) == 1:
        (only,) = result.pop("allOf")
        result |= only
    if not result.keys() & {"type", "anyOf", "enum", "const", "$ref"} or "allOf" in result:
        raise _NotStrict
    for key in _MAPS:
        if key in result:
            result[key] = _each(result[key])
    for key in _LISTS:
        if key in result:
            result[key] = [_strict(value) for value in result[key]]
    if result.get("type") == "array":
        if "items" not in result or "prefixItems" in result:
            raise _NotStrict
        result["items"] = _strict(result["items"])
    if result.get("type") == "object":
        if result.get("additionalProperties", False) is not False or "properties" not in result:
            raise _NotStrict
        result["additionalProperties"] = False
        result["required"] = list(result["properties"])
    return result


def _each(schemas: dict[str, Any]) -> dict[str, Any]:
    return {name: _strict(schema) for name, schema in schemas.items()}
