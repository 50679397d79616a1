"""The table of the client's methods in the reference: all of them, with their arguments."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from posology.client import Client

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "api.md"


def test_the_reference_lists_every_method_with_its_arguments() -> None:
    _, client = PAGE.read_text(encoding="utf-8").split("## The client\n")
    cells = [line.split(" | ")[0] for line in client.splitlines() if line.startswith("| `")]
    told = dict(re.findall(r"`(\w+)\((.*?)\)`", " ".join(cells)))
    methods = dict(inspect.getmembers(Client, inspect.isfunction))
    public = {name for name in methods if not name.startswith("_")} - {"aclose"}
    assert set(told) == public
    for name, arguments in told.items():
        real = inspect.signature(methods[name]).parameters
        names = [word.partition("=")[0].strip("* ") for word in arguments.split(",")]
        assert [one for one in names if one] == list(real)[1:], name
