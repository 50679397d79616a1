"""What programs rely on, as one version published it: ``python -m tests.stored.forms tests/stored/VERSION-forms.txt``.

Each line is a place and what is there: a field of a form that is requested, replied or printed with its types (``!``: it is
required) and, of requests, its limits; a parameter; a name of a command, option, setting, error or of Python.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

Schema = Mapping[str, Any]
#: place → words: types, values of enumerations, limits
Forms = dict[str, frozenset[str]]
DOCS = Path(__file__).resolve().parents[2] / "docs"
REQUIRED = "!"
#: limits of a request's values, and whether a larger one is wider
_LIMITS = {
    "maximum": True, "maxLength": True, "maxItems": True, "minimum": False, "minLength": False, "minItems": False,
}  # fmt: skip


def current() -> Forms:
    """Return what this checkout publishes."""
    api = json.loads((DOCS / "openapi.json").read_text(encoding="utf-8"))
    printed = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((DOCS / "schema").glob("*.json"))
    }
    return {**forms_of(api, printed), **{name: frozenset() for name in _names()}}


def read(path: Path) -> Forms:
    """Return what a version published."""
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return {place: frozenset(words) for place, *words in rows}


def write(forms: Forms, path: Path) -> None:
    """Write what a version publishes."""
    lines = ("\t".join((place, *sorted(words))) + "\n" for place, words in sorted(forms.items()))
    path.write_text("".join(lines), encoding="utf-8")


def forms_of(api: Schema, printed: Mapping[str, Schema]) -> Forms:
    """Return the forms of an OpenAPI document, and of the JSON schemas of what commands print by name."""
    named = api.get("components", {}).get("schemas", {})
    forms: Forms = {}
    for path, item in api.get("paths", {}).items():
        for method, operation in item.items():
            route = f"{method.upper()} {path}"
            forms[route] = frozenset()
            asks, replies = _sent(operation), _replied(operation)
            forms |= _with_refs(f"request {route}", asks, named)
            forms |= _with_refs(f"reply {route}", replies, named)
    # events and messages, of which no operation's schema tells
    for name, schema in named.items():
        if not {f"request {name}", f"reply {name}"} & forms.keys():
            forms |= _with_refs(f"reply {name}", schema, named)
    for name, schema in printed.items():
        forms |= _with_refs(f"printed {name}", schema, schema.get("$defs", {}))
    return forms


def _sent(operation: Schema) -> Schema:
    """Return an operation's parameters and bodies as fields of one object."""
    given = operation.get("parameters", ())
    fields = {f"{one['in']}:{one['name']}": one.get("schema", {}) for one in given}
    needed = [f"{one['in']}:{one['name']}" for one in given if one.get("required")]
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        fields[f"body:{media}"] = content.get("schema", {})
    return {"properties": fields, "required": needed, "type": "object"}


def _replied(operation: Schema) -> Schema:
    """Return the replies of an operation as fields of one object."""
    fields = {
        f"{status}:{media}": content.get("schema", {})
        for status, reply in operation["responses"].items()
        for media, content in reply.get("content", {"": {}}).items()
    }
    return {"properties": fields, "type": "object"}


def _with_refs(place: str, schema: Schema, named: Mapping[str, Schema]) -> Forms:
    """Return the lines of a schema and of all that it refers to; these are of the same direction."""
    direction = place.partition(" ")[0]
    forms: Forms = {}
    todo = {place: schema}
    while todo:
        where, one = todo.popitem()
        lines = dict(_fields(one, where, asked=direction == "request"))
        forms |= lines
        for name in named:
            held = f"{direction} {name}"
            if held not in forms and any(f"#{name}" in words for words in lines.values()):
                todo[held] = named[name]
    return forms


def _fields(
    schema: Schema, place: str, *, asked: bool, required: bool = False
) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield a line of a schema, and one of each field in it."""
    words: set[str] = {REQUIRED} if required else set()
    for part in _alternatives(schema):
        words.update(_kinds(part))
        if asked:
            words.update(f"{name}={part[name]}" for name in (*_LIMITS, "pattern") if name in part)
        needed = part.get("required", ())
        for name, field in part.get("properties", {}).items():
            yield from _fields(field, f"{place}.{name}", asked=asked, required=name in needed)
        for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
            if isinstance(part.get(key), Mapping):
                yield from _fields(part[key], f"{place}{mark}", asked=asked)
        for number, item in enumerate(part.get("prefixItems", ())):
            yield from _fields(item, f"{place}[{number}]", asked=asked)
    yield place, frozenset(words)


def _alternatives(schema: Schema) -> Iterator[Schema]:
    parts = [one for key in ("anyOf", "oneOf", "allOf") for one in schema.get(key, ())]
    for part in parts:
        yield from _alternatives(part)
    if not parts or "type" in schema:
        yield schema


def _kinds(part: Schema) -> Iterable[str]:
    if "$ref" in part:
        return [f"#{part['$ref'].rpartition('/')[2]}"]
    if "enum" in part or "const" in part:
        return [json.dumps(one) for one in part.get("enum", [part.get("const")])]
    kind = part.get("type", "any")
    return [kind] if isinstance(kind, str) else kind


def _names() -> Iterator[str]:
    """Yield the names of settings, commands, options, errors with their exit statuses, of Python and of the index's format."""
    import typer

    import posology
    from orchestrator.cli.app import app
    from orchestrator.settings import Settings
    from posology import client, errors
    from posology.index.schema import FORMAT, SPLITTER
    from strategies.compression.self_information.annotator import VERSION as ANNOTATOR

    for field in Settings.model_fields.values():
        aliases = getattr(field.validation_alias, "choices", None) or [field.alias]
        yield from (f"setting {alias}" for alias in aliases)
    for name in errors.__all__:
        if status := getattr(getattr(errors, name), "exit_code", None):
            yield f"error {name} {status}"
    for module in (posology, client):
        yield from (f"python {module.__name__}.{name}" for name in module.__all__)
    yield from _commands(typer.main.get_command(app), "posology")
    # another one would write no record into an index of before
    yield f"index {FORMAT} split by {SPLITTER}, annotated by {ANNOTATOR}"


def _commands(command: Any, path: str) -> Iterator[str]:
    children = getattr(command, "commands", {})
    for name, child in children.items():
        yield from _commands(child, f"{path} {name}")
    if not children:
        yield path
        for one in command.params:
            words = (*one.opts, *one.secondary_opts)
            yield from (f"{path} {word}" for word in words if word.startswith("-"))


def losses(old: Forms, new: Forms) -> Iterator[str]:
    """Yield what programs that were written for an old version would miss, or send in vain, a line each."""
    for place, was in old.items():
        if place not in new:
            yield f"{place}: gone"
            continue
        asked = place.startswith("request ")
        now = new[place]
        gone = was - now - {REQUIRED} if asked else was - now
        yield from (
            f"{place}: no longer {word}" for word in sorted(gone) if not _wider(word, now, asked)
        )
        if asked:
            yield from (f"{place}: now {word}" for word in sorted(now - was) if _tighter(word, was))
        elif "null" in now - was and was:
            yield f"{place}: now null"
    for place, now in new.items():
        whole = place.rpartition(".")[0]
        if place not in old and whole in old and place.startswith("request ") and REQUIRED in now:
            yield f"{place}: new, and required"


def _wider(word: str, now: frozenset[str], asked: bool) -> bool:
    """Whether what a word said is still so by another word; :func:`_tighter` compares limits."""
    if not asked:
        return False
    within = "number" if word == "integer" else "string" if word.startswith('"') else None
    return _limit(word) or "any" in now or within in now


def _tighter(word: str, was: frozenset[str]) -> bool:
    """Whether a new word of a request refuses what was taken."""
    if not _limit(word):
        return word == REQUIRED
    name, _, value = word.partition("=")
    before = [one.partition("=")[2] for one in was if one.startswith(f"{name}=")]
    if not before or name == "pattern":
        return True
    return float(value) < float(before[0]) if _LIMITS[name] else float(value) > float(before[0])


def _limit(word: str) -> bool:
    return word.partition("=")[0] in (*_LIMITS, "pattern")


if __name__ == "__main__":
    write(current(), Path(sys.argv[1]))
