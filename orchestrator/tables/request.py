"""Fields of a table: a preset, fields of one's own, criteria of a screening."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field as Bounds
from pydantic import model_validator
from pydantic_core import PydanticCustomError

from orchestrator.question.sent import Sent, Text
from posology.errors import BadFile, InvalidQuery
from posology.types.tables import Field, FieldKind
from strategies.tables.appraisal import APPRAISAL
from strategies.tables.presets import PICO, criteria

#: maximum fields of a table, criteria included
MAX_FIELDS = 48
#: maximum characters of a question or criterion, and of a choice; maximum choices of a field
MAX_QUESTION, MAX_CHOICE, MAX_CHOICES = 500, 100, 20
#: names of columns that are no fields
RESERVED = frozenset({"document", "title", "decision", "reasons", "remarks"})
TablePreset = Literal["pico", "appraisal"]
_PRESETS: dict[TablePreset, tuple[Field, ...]] = {"pico": PICO, "appraisal": APPRAISAL}

_Asked = Annotated[Text, Bounds(min_length=1, max_length=MAX_QUESTION)]
_Choice = Annotated[Text, Bounds(min_length=1, max_length=MAX_CHOICE, pattern=r"^[^|\r\n]+$")]


class FieldRequest(Sent):
    """A field of a table."""

    name: str = Bounds(pattern=r"^[a-z][a-z0-9_]{0,39}$")
    """Name of the column: lower-case letters, digits and underscores, at most 40."""
    question: _Asked
    """Question that is asked of each document."""
    type: FieldKind = FieldKind.TEXT
    """Type of the values: text, number or choice. Default: text."""
    choices: Annotated[tuple[_Choice, ...], Bounds(max_length=MAX_CHOICES)] = ()
    """Values of a choice, at least two. Default: none."""

    @model_validator(mode="after")
    def _choices(self) -> Self:
        if (self.type is FieldKind.CHOICE) != (len(self.choices) > 1):
            raise PydanticCustomError(
                "choices",
                "a field of the type choice needs at least two choices; a field of another type has none",
            )
        if len({one.casefold() for one in self.choices}) < len(self.choices):
            raise PydanticCustomError("choices", "two choices are the same")
        if self.name in RESERVED or self.name.startswith("criterion_"):
            raise PydanticCustomError(
                "name", "the name {name} is taken by another column", {"name": self.name}
            )
        return self


class FieldsRequest(Sent):
    """The fields of a table."""

    preset: TablePreset | None = None
    """Fields that are ready: pico (population, intervention, comparator, outcome, effect, design, n, funding), or appraisal
    (randomisation, concealment, blinding, n, n_analysed, attrition, analysis, interval, funding). Default: pico if neither
    fields nor criteria are given."""
    fields: tuple[FieldRequest, ...] = ()
    """Fields of your own, behind those of the preset. Default: none."""
    criteria: tuple[_Asked, ...] = ()
    """Criteria of inclusion of a screening: each document is met, not met or unclear by each, and gets a decision.
    Default: none."""

    def to_fields(self) -> tuple[Field, ...]:
        """Return the fields in the order of their columns.

        Raises:
            InvalidQuery: two have one name, or there are too many.
        """
        preset: TablePreset | None = self.preset or (
            None if self.fields or self.criteria else "pico"
        )
        own = tuple(
            Field(name=one.name, question=one.question, kind=one.type, choices=one.choices)
            for one in self.fields
        )
        found = (*criteria(self.criteria), *(_PRESETS[preset] if preset else ()), *own)
        if len(found) > MAX_FIELDS:
            raise InvalidQuery(
                f"a table has at most {MAX_FIELDS} fields (got {len(found)})", field="fields"
            )
        names = [one.name for one in found]
        if twice := next((one for one in names if names.count(one) > 1), None):
            raise InvalidQuery(f"two fields have the name {twice!r}", field="fields")
        return found


def read_fields(path: Path) -> FieldsRequest:
    """Read fields from a file of TOML.

    Raises:
        BadFile: it cannot be read, or is not TOML of this form.
    """
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadFile(f"not TOML: {error}", path=str(path)) from None
    try:
        return FieldsRequest.parse(given)
    except InvalidQuery as error:
        raise BadFile(error.message, path=str(path)) from None
