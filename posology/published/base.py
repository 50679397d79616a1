"""Base of the published forms."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Self, TypeVar

from pydantic import BaseModel, ConfigDict, PlainSerializer, TypeAdapter

T = TypeVar("T")


class Published(BaseModel):
    """Base of everything that leaves the system as JSON. It holds no internal types but enumerations."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    @classmethod
    def of(cls, value: object) -> Self:
        """Return the published form of a value that has the same fields."""
        return cls.model_validate(value, from_attributes=True)

    def to(self, kind: type[T]) -> T:
        """Return the internal value that has the same fields."""
        return TypeAdapter(kind).validate_python(self.model_dump())


#: dollars as a string of digits, never as a power of ten
Dollars = Annotated[
    Decimal, PlainSerializer(lambda amount: f"{amount:f}", return_type=str, when_used="json")
]
