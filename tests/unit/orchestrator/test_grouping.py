"""Groups of options in commands' signatures."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from orchestrator.cli.option_groups import Group, grouped


@dataclass(frozen=True, kw_only=True, slots=True)
class Inner(Group):
    names: Annotated[list[str] | None, typer.Option("--name", help="A name.")] = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Outer(Group):
    size: Annotated[int, typer.Option("--size", min=1, help="How many.")] = 3
    inner: Inner
    loud: Annotated[bool, typer.Option("--loud", help="Say it.")] = False


def show(
    word: Annotated[str, typer.Argument(help="A word.")],
    *,
    before: Annotated[str | None, typer.Option("--before")] = None,
    outer: Outer,
    after: Annotated[int, typer.Option("--after")] = 1,
) -> None:
    """Show what came in."""
    typer.echo(f"{word} {before} {outer} {after}")


APP = typer.Typer()
APP.command()(grouped(show))


def test_a_group_is_handed_over_whole() -> None:
    given = ["a", "--name", "x", "--before", "b", "--size", "5", "--name", "y", "--loud"]
    result = CliRunner().invoke(APP, given)
    outer = Outer(size=5, inner=Inner(names=["x", "y"]), loud=True)
    assert (result.exit_code, result.stdout) == (0, f"a b {outer} 1\n")


def test_what_is_not_given_has_the_groups_default() -> None:
    result = CliRunner().invoke(APP, ["a", "--after", "2"])
    assert (result.exit_code, result.stdout) == (0, f"a None {Outer(inner=Inner())} 2\n")


def test_options_stand_where_their_group_stood_and_are_checked() -> None:
    taken = list(inspect.signature(grouped(show)).parameters)
    assert taken == ["word", "before", "size", "names", "loud", "after"]
    assert CliRunner().invoke(APP, ["a", "--size", "0"]).exit_code == 2
    assert CliRunner().invoke(APP, ["a", "--outer", "x"]).exit_code == 2


def test_two_options_of_one_name_are_refused() -> None:
    def twice(*, size: Annotated[int, typer.Option("--other")] = 1, outer: Outer) -> None:
        typer.echo(f"{size} {outer}")

    with pytest.raises(ValueError, match="duplicate parameter name: 'size'"):
        grouped(twice)
