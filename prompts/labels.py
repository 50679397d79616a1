"""Labels as an enumeration in the schema of a reply: a provider that enforces schemas lets a model name no others.

Only the schema that is sent is narrow. A reply is read as before: ``[p1]`` for ``P1`` is accepted, and a label that was not
shown costs its quote, not a repair.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, create_model
from typing_extensions import TypeAliasType

from prompts.fence import label

FormT = TypeVar("FormT", bound=BaseModel)
#: Most labels of an enumeration. OpenAI's strict mode takes 1,000 values a schema, and more than 250 in one enumeration only
#: while they are short (guide *Structured model outputs*, section *Supported schemas*).
MOST: Final = 200
#: Number of cached reply forms of each prompt. Providers compile each form once, too.
FORMS: Final = 256


def _untitle(schema: dict[str, Any]) -> None:
    schema.pop("title", None)
    for field in schema.get("properties", {}).values():
        field.pop("title", None)


class ReplyForm(BaseModel):
    """A form of reply, or of a part of one: closed, and without pydantic's titles, which repeat the names at a price."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_untitle)


def one_of(labels: int, letter: str = "P") -> Any:
    """Return the type of a label of the first positions, to be used once in a form.

    Args:
        labels: number of positions.
        letter: of the labels.

    Returns:
        Of more than :data:`MOST` positions, and of none: any string.
    """
    if not 0 < labels <= MOST:
        return str
    names = [label(i, letter) for i in range(labels)]
    return Annotated[str, WithJsonSchema({"type": "string", "enum": names})]


@lru_cache(maxsize=FORMS)
def shared(labels: int, letter: str = "P") -> Any:
    """Return the type of :func:`one_of` for several fields of a form: the schema holds the enumeration once."""
    inner = one_of(labels, letter)
    return inner if inner is str else TypeAliasType("Label", inner)


def narrowed(form: type[FormT], **fields: Any) -> type[FormT]:
    """Return a form of reply with narrower fields.

    Args:
        form: the form; the result is a subclass of the same name.
        fields: the narrower types, with the descriptions that the fields have; or type and field, as ``create_model``
            takes them.
    """
    described: dict[str, Any] = {
        name: kind
        if isinstance(kind, tuple)
        else (kind, Field(description=form.model_fields[name].description))
        for name, kind in fields.items()
    }
    return create_model(form.__name__, __base__=form, **described)


def items(kind: Any, most: int | None = None) -> Any:
    """Return the type of a list of items whose type is known at run time only.

    Args:
        kind: type of an item.
        most: number of items. The schema says so; of a longer reply the first are kept, since a repair would cost more
            than the rest is worth. ``None``: any number.
    """
    if most is None:
        return list[kind]

    def first(given: Any) -> Any:
        return given[:most] if isinstance(given, list) else given

    return Annotated[list[kind], Field(max_length=most), BeforeValidator(first)]
