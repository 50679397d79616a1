"""Options of a question: every command takes names, types, bounds and help from the fields of a request."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import Annotated, Any, ClassVar, get_args, get_origin

import typer
from annotated_types import Ge, Le
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typer.models import OptionInfo

from orchestrator.cli.option_groups import Group
from orchestrator.question.request import (
    NO_DEFAULT,
    TEMPLATES,
    AskRequest,
    JobRequest,
)
from orchestrator.question.sent import FiltersRequest
from posology.errors import InvalidQuery
from posology.published.base import descriptions

#: field → its option, where that is not the field's name
_FLAGS: Mapping[str, str] = MappingProxyType(
    {
        "options": "--option",
        "publication_types": "--type",
        "journals": "--journal",
        "languages": "--language",
        "max_cost_usd": "--max-cost",
        "deadline_seconds": "--deadline",
        "collection": "--index",
    }
)
#: field → placeholder of its value in the help, where that is not the type's name
_METAVARS: Mapping[str, str] = MappingProxyType(
    {
        "options": "A=TEXT",
        "since": "YEAR",
        "until": "YEAR",
        "publication_types": "NAME",
        "journals": "NAME",
        "mesh": "HEADING",
        "languages": "CODE",
        "index_version": "N",
        "compressor": "NAME",
        "preset": "NAME",
        "prompts": "DIR",
        "max_cost_usd": "USD",
        "deadline_seconds": "SECONDS",
        "parent": "JOB",
        "collection": "NAME",
    }
)


class RequestOptions(Group):
    """Options made of fields of a request.

    An option that is not given is not sent: the request's own default applies.
    """

    __slots__ = ("_values",)

    #: where the fields are defined
    model: ClassVar[type[BaseModel]] = JobRequest
    #: names of the fields, in order
    names: ClassVar[tuple[str, ...]]
    #: defaults that differ from the request's
    defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    def __init__(self, **values: Any) -> None:
        self._values = {**self.defaults, **values}

    @classmethod
    def parameters(cls) -> tuple[inspect.Parameter, ...]:
        """Return an option for each field."""
        return tuple(cls._parameter(name) for name in cls.names)

    @classmethod
    def _parameter(cls, name: str) -> inspect.Parameter:
        annotation: Any = FilterOptions
        default: Any = inspect.Parameter.empty
        if name != "filters":
            kind = _type(cls.model.model_fields[name])
            default = False if kind is bool else cls.defaults.get(name)
            annotation = Annotated[
                kind if kind is bool else kind | None,
                option(name, model=cls.model, default=default or None),
            ]
        return inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )

    def given(self) -> dict[str, Any]:
        """Return the fields of the request that are given."""
        return dict(self._given())

    def _given(self) -> Iterator[tuple[str, Any]]:
        for name, value in self._values.items():
            found: Any = value.given() if isinstance(value, RequestOptions) else value
            if found not in (None, [], {}):
                yield name, _READ.get(name, _as_given)(found)


def _as_given(found: Any) -> Any:
    return found


def _templates(found: str) -> str:
    """Return the digest of templates: as given, or of a folder, which is loaded."""
    if re.fullmatch(TEMPLATES, found):
        return found
    from prompts.template import load_own

    return load_own(Path(found).absolute())


class FilterOptions(RequestOptions):
    """Filters of the passages."""

    model = FiltersRequest
    names = tuple(FiltersRequest.model_fields)


class QuestionOptions(RequestOptions):
    """How one question is answered."""

    names = tuple(name for name in AskRequest.model_fields if name != "question")

    def fields(self, question: str) -> dict[str, Any]:
        """Return a question and its options as a request.

        Args:
            question: ``-``: it is read from standard input.

        Raises:
            InvalidQuery: an option is not of the form A=TEXT.
        """
        return {"question": _read_stdin() if question == "-" else question, **self.given()}


class JobOptions(QuestionOptions):
    """How one question from the queue is answered."""

    names = tuple(name for name in JobRequest.model_fields if name != "question")


class RowOptions(RequestOptions):
    """Defaults for the rows of a file, in the fields that a row omits; the index is the command's own option."""

    names = tuple(
        name for name in JobRequest.model_fields if name not in {*NO_DEFAULT, "collection"}
    )


class BatchOptions(RowOptions):
    """Defaults for the rows of a batch, in the fields that a row omits."""

    names = (*RowOptions.names, "collection")


def option(name: str, *, model: type[BaseModel] = JobRequest, default: Any = None) -> OptionInfo:
    """Return the option of a field.

    Args:
        name: of the field.
        model: where it is defined.
        default: the command's own; ``None``: the field's.
    """
    field = model.model_fields[name]
    text, _, usual = descriptions(model).get(name, "").rpartition("Default: ")
    repeated = " Repeat for several." if _type(field) == list[str] else ""
    bounds = {type(bound): bound for bound in field.metadata if isinstance(bound, Ge | Le)}
    low, high = bounds.get(Ge), bounds.get(Le)
    numeric = _type(field) in (int, float)
    made = typer.Option(
        _FLAGS.get(name, f"--{name.replace('_', '-')}"),
        metavar=_METAVARS.get(name),
        min=low.ge if numeric and isinstance(low, Ge) else None,  # type: ignore[arg-type]  # a number
        max=high.le if numeric and isinstance(high, Le) else None,  # type: ignore[arg-type]  # a number
        help=f"{text}Default: {usual if default is None else f'{default}.'}{repeated}",
        show_default=False,
    )
    assert isinstance(made, OptionInfo)
    return made


def _type(field: FieldInfo) -> Any:
    """Return the type of a field on the command line: the request checks and converts the rest."""
    kind = field.annotation
    while (args := get_args(kind)) and (NoneType in args or get_origin(kind) is Annotated):
        kind = next(arg for arg in args if arg is not NoneType)
    if kind in (bool, int, float):
        return kind
    return list[str] if get_origin(kind) in (tuple, dict) else str


#: the same option, for a command that takes it by itself
KOption = Annotated[int, option("k")]


def _read_stdin() -> str:
    # what is not UTF-8 is refused as a question, with a message, where every question is checked
    return sys.stdin.buffer.read().decode("utf-8", errors="surrogateescape")


def _labelled(given: list[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for item in given:
        label, equals, text = item.partition("=")
        if not equals or label in options:
            raise InvalidQuery(
                f"--option must be of the form A=TEXT, each letter once (got {item!r})",
                field="options",
            )
        options[label] = text
    return options


#: field → how the command line's value becomes the request's, where it is not the same
_READ: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {"options": _labelled, "prompts": _templates}
)
