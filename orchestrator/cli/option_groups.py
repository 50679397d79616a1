"""Groups of options that several commands take."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, get_type_hints


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Base of groups: dataclasses whose fields are options, as a command's parameters are, or groups again."""


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each field of its parameters that are groups, at the group's place.

    Typer reads what the command takes from its signature: there the options stand one by one.

    Raises:
        ValueError: two options have one name.
    """
    hints = get_type_hints(command, include_extras=True)
    taken = [
        parameter.replace(annotation=hints[name])
        for name, parameter in inspect.signature(command).parameters.items()
    ]
    spread = [option for parameter in taken for option in _spread(parameter)]

    @wraps(command)
    def called(**given: Any) -> None:
        command(**{parameter.name: _gathered(parameter, given) for parameter in taken})

    called.__annotations__ = {option.name: option.annotation for option in spread}
    called.__dict__["__signature__"] = inspect.Signature(spread, return_annotation=None)
    return called


def _spread(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    group = _group_of(parameter.annotation)
    if group is None:
        yield parameter
    else:
        for option in _options(group):
            yield from _spread(option)


def _options(group: type[Group]) -> tuple[inspect.Parameter, ...]:
    """What the group takes, as a function would."""
    hints = get_type_hints(group, include_extras=True)
    return tuple(
        parameter.replace(annotation=hints[name])
        for name, parameter in inspect.signature(group).parameters.items()
    )


def _gathered(parameter: inspect.Parameter, given: Mapping[str, Any]) -> Any:
    """What the command is handed: the option's value, or the group that holds several."""
    group = _group_of(parameter.annotation)
    if group is None:
        return given[parameter.name]
    return group(**{option.name: _gathered(option, given) for option in _options(group)})


def _group_of(annotation: Any) -> type[Group] | None:
    if isinstance(annotation, type) and issubclass(annotation, Group):
        return annotation
    return None
