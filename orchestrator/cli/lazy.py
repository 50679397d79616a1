"""Commands that are imported when they are called: ``--help`` and completion read a table instead."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup

from orchestrator.cli.examples import epilog

Loaded = TyperCommand | TyperGroup

#: what stands for a value in the help, by its type
_VALUES: dict[Any, str] = {int: "N", float: "NUMBER", str: "TEXT", Path: "PATH"}
#: bounds in the text of an option
_BOUNDS = re.compile(r"\d to \d")
#: a bound that is none
_ANY = 2**31


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One command, or one group of commands."""

    name: str
    #: first sentence of its docstring, or the group's help
    help: str
    #: ``module:attribute`` of its function or ``typer.Typer``
    target: str
    #: whether it runs for minutes, or runs other processes
    long: bool = False

    def load(self) -> Loaded:
        """Import the command."""
        module, _, attribute = self.target.partition(":")
        found = getattr(import_module(module), attribute)
        holder = typer.Typer(rich_markup_mode=None, add_completion=False)
        if isinstance(found, typer.Typer):
            holder.add_typer(found, name=self.name, cls=_Helpful)
        else:
            holder.command(self.name)(found)
        command = typer.main.get_group(holder).commands[self.name]
        assert isinstance(command, Loaded)
        _with_examples(command, self.name)
        _readable(command)
        return command


def _with_examples(command: Any, path: str) -> None:
    """End the help of a command, or of each command of a group, with its example."""
    if isinstance(command, TyperGroup):
        for name, child in command.commands.items():
            _with_examples(child, f"{path} {name}")
    elif command.epilog is None:
        command.epilog = epilog(path)


def _readable(command: Any) -> None:
    """Show values as other programs do (``N``, ``TEXT``, ``PATH``), and no bounds that an option's text has already."""
    for child in getattr(command, "commands", {}).values():
        _readable(child)
    for parameter in command.params:
        annotation = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
        known = next(
            (_VALUES[one] for one in (annotation, *get_args(annotation)) if one in _VALUES), None
        )
        if parameter.param_type_name == "argument":
            vars(parameter)["display_type_rich"] = _no_words
        elif parameter.metavar is None and known is not None:
            parameter.metavar = known
        if _BOUNDS.search(parameter.help or "") or (getattr(parameter, "max", None) or 0) >= _ANY:
            vars(parameter)["_get_number_range_help_str"] = _no_words


def _no_words(**_: Any) -> str:
    return ""


class _Helpful(TyperGroup):
    """A group that prints its help when it is called alone: that is no mistake."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            sys.stdout.write(ctx.get_help() + "\n")
            ctx.exit()
        return super().parse_args(ctx, args)


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """Commands under one heading of the help."""

    title: str
    entries: tuple[Entry, ...]


def lazy_group(sections: Sequence[Section]) -> type[TyperGroup]:
    """Return the class of a group whose commands are those of a table.

    Args:
        sections: headings and commands, in the order of the help.
    """
    table = {entry.name: entry for section in sections for entry in section.entries}

    class Lazy(TyperGroup):
        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            self.commands = _Commands(table)

        def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer's signature
            return list(table)

        def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - the same
            width = max(map(len, table))
            for section in sections:
                with formatter.section(section.title):
                    formatter.write_dl(
                        # one column for all sections
                        [(entry.name.ljust(width), entry.help) for entry in section.entries]
                    )

        def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
            from typer.core import CompletionItem  # type: ignore[attr-defined]

            found = [
                CompletionItem(entry.name, help=entry.help)
                for entry in table.values()
                if entry.name.startswith(incomplete)
            ]
            # the root's own options
            return [*found, *super(TyperGroup, self).shell_complete(ctx, incomplete)]

    return Lazy


class _Commands(MutableMapping[str, Any]):
    """The commands of a table by name; each is imported when it is asked for."""

    def __init__(self, table: dict[str, Entry]) -> None:
        self._table = table
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = self._table[name].load()
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        raise TypeError("the table of commands is fixed")

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)
