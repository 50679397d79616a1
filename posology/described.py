"""Names and descriptions of values in JSON schemas."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from types import ModuleType
from typing import Any, TypeVar

T = TypeVar("T")


def published(name: str) -> Callable[[type[T]], type[T]]:
    """Return a decorator of dataclasses that leave the system as JSON as they are: fields of published forms hold them.

    Strings below their fields describe these in schemas, as in :class:`posology.published.base.Described`.

    Args:
        name: name in schemas.
    """

    def publish(kind: type[T]) -> type[T]:
        # pydantic calls a definition in a schema after the class
        shown = type(name, (kind,), {"__slots__": (), "__module__": kind.__module__})

        def core(_source: Any, handler: Any) -> Any:
            found = handler(shown)
            found["cls"] = kind
            return found

        def schema(found: Any, handler: Any) -> Any:
            made = describe(handler(found), handler, texts(kind))
            handler.resolve_ref_schema(made)["title"] = name
            return made

        for part, hook in (("core", core), ("json", schema)):
            setattr(kind, f"__get_pydantic_{part}_schema__", staticmethod(hook))
        return kind

    return publish


def describe(made: dict[str, Any], handler: Any, described: Mapping[str, str]) -> dict[str, Any]:
    """Return the JSON schema of a class, with descriptions of its fields that have none yet.

    Args:
        made: the schema, or a reference to it.
        handler: pydantic's.
        described: descriptions by name of the field.
    """
    properties = handler.resolve_ref_schema(made).get("properties", {})
    for name, text in described.items():
        if name in properties:
            properties[name].setdefault("description", text)
    return made


def texts(kind: type) -> Mapping[str, str]:
    """Return the strings below a class's own annotated names, by name. They are read from its source."""
    return _strings(sys.modules[kind.__module__]).get(kind.__name__, {})


@cache
def _strings(module: ModuleType) -> Mapping[str, Mapping[str, str]]:
    """Return the strings below annotated names of a module's classes, by class and name."""
    return {
        node.name: {
            before.target.id: inspect.cleandoc(after.value.value)
            for before, after in pairwise(node.body)
            if isinstance(before, ast.AnnAssign)
            and isinstance(before.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        }
        for node in ast.parse(inspect.getsource(module)).body
        if isinstance(node, ast.ClassDef)
    }
