"""Base of the published forms."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    GetJsonSchemaHandler,
    PlainSerializer,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import CoreSchema

from posology.described import describe, texts

T = TypeVar("T")
_Form = TypeVar("_Form", bound=BaseModel)


class Described(BaseModel):
    """Base of forms whose fields are described by the string below them.

    Schemas hold the descriptions. They are read from the source when a schema is made: pydantic would read them at
    import, which takes a tenth of the time that a command takes to start. A form is built when it is first used, since
    a command uses a few of them.

    Of the strings that JSON is read into, only keys are kept for the next: values, as a reason with amounts in it, are
    new each time, and the API would fill pydantic's cache with 16,384 of them in its first hours.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, cache_strings="keys")

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return describe(handler(core_schema), handler, descriptions(cls))


class Published(Described):
    """Base of forms of JSON that leave the system. Their fields hold no dataclass that is not :func:`published`.

    Fields of a later version are ignored when JSON is read, and schemas allow them.
    """

    model_config = ConfigDict(extra="ignore")

    @classmethod
    def of(cls, value: object) -> Self:
        """Return the published form of a value that has the same fields."""
        return cls.model_validate(value, from_attributes=True)

    def to(self, kind: type[T]) -> T:
        """Return the internal value that has the same fields."""
        return TypeAdapter(kind).validate_python(self.model_dump())


def descriptions(form: type[BaseModel]) -> Mapping[str, str]:
    """Return the descriptions of a form's own and inherited fields by name: the string below, else the field's own."""
    found = {name: own for name, field in form.model_fields.items() if (own := field.description)}
    for kind in reversed(form.__mro__):
        if issubclass(kind, BaseModel) and kind is not BaseModel:
            found |= texts(kind)
    return found


def dollars_text(amount: Decimal) -> str:
    """Return dollars in their only published form: digits without an exponent or trailing zeros."""
    text = f"{amount:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _plain(details: dict[str, Any]) -> dict[str, Any]:
    return {k: dollars_text(v) if isinstance(v, Decimal) else v for k, v in details.items()}


#: dollars as a string in their only published form
Dollars = Annotated[Decimal, PlainSerializer(dollars_text, return_type=str, when_used="json")]
#: fields of an error; amounts of money are dollars in their only published form
Details = Annotated[
    dict[str, Any], PlainSerializer(_plain, return_type=dict[str, Any], when_used="json")
]


def parse_strictly(form: type[_Form], body: str | bytes) -> _Form:
    """Read JSON as a form, strictly: `"8"` is no number. A whole number may be written as 8.0, as in JSON Schema.

    Raises:
        ValidationError: it does not fit.
    """
    try:
        return form.model_validate_json(body, strict=True)
    except ValidationError as error:
        wrong = error.errors(include_url=False)
        if not any(one["type"] == "int_type" and _is_whole(one["input"]) for one in wrong):
            raise
    return form.model_validate_json(json.dumps(_in_digits(json.loads(body))), strict=True)


def _is_whole(value: object) -> bool:
    return isinstance(value, float) and value.is_integer()


def _in_digits(value: Any) -> Any:
    """Return a value of JSON with its whole numbers as integers."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_in_digits(one) for one in value]
        case dict():
            return {name: _in_digits(one) for name, one in value.items()}
        case _:
            return value
