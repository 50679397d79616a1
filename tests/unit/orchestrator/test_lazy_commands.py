"""The table of commands: it says what the commands say, and no more is imported than what is called."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.testing import CliRunner

from orchestrator.cli.app import SECTIONS, app
from orchestrator.cli.examples import EXAMPLES

ENTRIES = [entry for section in SECTIONS for entry in section.entries]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_its_line_is_the_first_sentence_of_the_command(entry: object) -> None:
    command = entry.load()  # type: ignore[attr-defined]
    first = " ".join((command.help or "").split("\n\n")[0].split())
    assert first.startswith(entry.help.removesuffix("."))  # type: ignore[attr-defined]


def test_nothing_is_cut_in_the_help() -> None:
    done = CliRunner().invoke(app, ["--help"], terminal_width=80)
    words = " ".join(done.output.split())
    assert done.exit_code == 0
    assert "…" not in words
    assert "..." not in words.removeprefix("Usage: posology [OPTIONS] COMMAND [ARGS]...")
    assert all(entry.help in words for entry in ENTRIES)
    assert all(f"{section.title}:" in words for section in SECTIONS)


def test_a_wrong_name_is_told_with_the_nearest() -> None:
    done = CliRunner().invoke(app, ["serch"])
    assert done.exit_code == 2
    assert "Did you mean 'search'" in done.output


@pytest.mark.parametrize(
    ("words", "found"),
    [("posology jo", "jobs"), ("posology jobs ca", "cancel"), ("posology ask --pol", "--policy")],
)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes(words: str, found: str, shell: str) -> None:
    environment = {
        **os.environ,
        "_POSOLOGY_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
        "_TYPER_COMPLETE_ARGS": words,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    done = subprocess.run(
        [str(Path(sys.executable).with_name("posology"))],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found in done.stdout


def leaves(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each command that does something, by its path."""
    if not isinstance(command, TyperGroup):
        yield path, command
        return
    for name, child in command.commands.items():
        yield from leaves(child, f"{path} {name}".strip())


def test_each_help_ends_with_an_example_that_the_command_takes() -> None:
    root = typer.main.get_command(app)
    found = dict(leaves(root))
    assert found.keys() == EXAMPLES.keys()
    for path, command in found.items():
        words = shlex.split(EXAMPLES[path])
        parts = len(path.split())
        assert words[:parts] == path.split()
        # refuses unknown options, values of a wrong type, and missing arguments
        command.make_context(path, words[parts:])
        shown = CliRunner().invoke(app, [*path.split(), "--help"], terminal_width=80).output
        assert shown.rstrip().splitlines()[-1].strip().startswith(f"posology {path}")
        assert not [line for line in shown.splitlines() if len(line) > 80], path
        # types of Python, and bounds that the text has already
        assert "<int" not in shown, path
        assert "list[" not in shown, path
        assert "1 to 200." not in shown or "x<=200" not in shown, path
