"""Groups of options that several commands take."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any, get_type_hints


class Group:
    """Base of groups: dataclasses whose fields are options, as a command's parameters are, or groups again."""

    __slots__ = ()

    @classmethod
    def parameters(cls) -> tuple[inspect.Parameter, ...]:
        """Return the options, as parameters of a function."""
        hints = get_type_hints(cls, include_extras=True)
        return tuple(
            parameter.replace(annotation=hints[name])
            for name, parameter in inspect.signature(cls).parameters.items()
        )


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter that is a group by its options, at the group's place.

    Typer reads options from the command's signature, so the signature lists them one by one.

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
        for option in group.parameters():
            yield from _spread(option)


def _gathered(parameter: inspect.Parameter, given: Mapping[str, Any]) -> Any:
    """Return the argument of the command: the value of an option, or a group of values."""
    group = _group_of(parameter.annotation)
    if group is None:
        return given[parameter.name]
    return group(**{option.name: _gathered(option, given) for option in group.parameters()})


def _group_of(annotation: Any) -> type[Group] | None:
    if isinstance(annotation, type) and issubclass(annotation, Group):
        return annotation
    return None
