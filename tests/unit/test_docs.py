"""The documentation says what the code does: commands, links, generated pages, decisions."""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer

from orchestrator.cli.app import app
from orchestrator.settings import Settings
from posology import errors
from posology.llm.providers.table import variables
from posology.published.base import descriptions

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "evals" / "results").glob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "evals/README.md")),
]
FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)


@cache
def hook(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "hooks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def commands() -> Iterator[tuple[Path, str]]:
    """The command lines of ``posology`` in the pages' fences, each with its page."""
    for page in PAGES:
        for fence in FENCE.finditer(page.read_text(encoding="utf-8")):
            text = fence["text"].replace("\\\n", " ")
            for line in text.splitlines():
                found = re.search(r"(?:^|\$ |[A-Z_]+=\S+ )(posology [a-z].*)", line)
                if found is not None:
                    yield page.relative_to(ROOT), found[1].partition(" #")[0]


def test_every_command_of_the_documentation_exists_with_its_options() -> None:
    root = typer.main.get_command(app)
    wrong = []
    for page, line in commands():
        node: Any = root
        given: set[str] = set()
        for word in shlex.split(line.replace("…", "x"))[1:]:
            children = getattr(node, "commands", {})
            if word in children:
                node = children[word]
            elif word.startswith("--"):
                given.add(word.partition("=")[0])
        known = {name for item in node.params for name in (*item.opts, *item.secondary_opts)}
        if hasattr(node, "commands") or not given <= {*known, "--help"}:
            wrong.append(f"{page}: {line}")
    assert not wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere_and_lines_stay_readable(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    generated = {ROOT / "docs" / name for name in hook("pages").PAGES}
    for target in re.findall(r"\]\(([^)#\s]+)[^)\s]*\)", FENCE.sub("", text)):
        if not re.match(r"[a-z]+:", target):
            path = (page.parent / target).resolve()
            assert path.exists() or path in generated, target
    assert not re.search("^(<{7}|>{7}) ", text, re.MULTILINE), "two versions of a passage"
    if ROOT / "evals" not in page.parents:
        assert not [line for line in text.splitlines() if len(line) >= 200]


def test_experiments_that_pages_name_exist() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for name in re.findall(r"python -m\s+evals\.([a-z_]+(?:\.[a-z_]+)?)", text):
            module = ROOT / "evals" / name.replace(".", "/")
            known = module.with_suffix(".py").exists() or (module / "__main__.py").exists()
            assert known, f"{page.name}: {name}"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_a_decision_is_a_page_with_status_date_and_one_sentence() -> None:
    for path, about, title in hook("pages").decisions():
        assert set(about) == {"status", "date", "decision"}, path.name
        assert about["decision"].count(". ") == 0, path.name
        assert title, path.name
        assert len(path.read_text(encoding="utf-8").split()) <= 550, path.name


def test_generated_pages_name_every_command_setting_and_error() -> None:
    pages = {name: page() for name, page in hook("pages").PAGES.items()}
    for name in ("ask", "jobs show", "compressor train"):
        assert f"## posology {name}\n" in pages["reference/cli.md"]
    assert set(descriptions(Settings)) == set(Settings.model_fields)
    for field in Settings.model_fields.values():
        assert f"`{field.alias}`" in pages["reference/settings.md"]
    for variable in variables():
        assert f"`{variable}`" in pages["reference/settings.md"]
    for name in ("BudgetExhausted", "IndexMissing", "DriftFound"):
        assert f"| {getattr(errors, name).exit_code} |" in pages["reference/exit-status.md"]
        assert f"`{name}`" in pages["reference/exit-status.md"]
    for page in pages.values():
        assert not re.search(r":(class|mod|func|data|meth):`", page)


def test_a_sequence_diagram_is_drawn() -> None:
    draw = hook("diagrams").draw
    picture = draw("a | b\na > b: asks\na < b: answers\na: thinks\n")
    assert picture.count('class="call"') == 1
    assert picture.count('class="reply"') == 1
    assert "thinks" in picture
    with pytest.raises(ValueError, match="a > c"):
        draw("a | b\na > c: asks\n")
