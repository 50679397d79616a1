"""The shape of the code, from its syntax trees: no import cycle, no crowded package, no long module.

Imports within functions and under ``TYPE_CHECKING`` count as well.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("workers", "orchestrator", "strategies", "policies", "prompts", "posology")
#: modules of one package, ``__init__`` apart
MOST = 12
#: lines of a module
LONGEST = 400


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {
    name_of(path): path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))
}


def imported(name: str) -> Iterator[str]:
    """Yield the dotted names that a module imports, of modules and of what they hold."""
    path = MODULES[name]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # ruff allows no relative imports
            assert node.module is not None, name
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def module_of(dotted: str) -> str | None:
    """Return the module that a dotted name is, or is in; ``None``: it is not ours."""
    while dotted and dotted not in MODULES:
        dotted = dotted.rpartition(".")[0]
    return dotted or None


def graph() -> dict[str, set[str]]:
    found = {name: {module_of(dotted) for dotted in imported(name)} for name in MODULES}
    return {name: {one for one in ones if one and one != name} for name, ones in found.items()}


def test_no_modules_import_each_other() -> None:
    edges = graph()
    # raises CycleError with the modules of a cycle
    TopologicalSorter(edges).prepare()


def test_no_package_has_more_than_twelve_modules_of_its_own() -> None:
    modules = [*MODULES.values(), *(ROOT / "evals").rglob("*.py")]
    sizes = Counter(path.parent for path in modules if path.name != "__init__.py")
    assert {str(folder.relative_to(ROOT)): n for folder, n in sizes.items() if n > MOST} == {}


def test_every_folder_of_modules_is_a_package() -> None:
    for folder in {path.parent for path in MODULES.values()}:
        assert (folder / "__init__.py").is_file(), folder


def test_no_module_has_more_than_400_lines() -> None:
    sizes = {
        name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in MODULES.items()
    }
    assert {name: size for name, size in sizes.items() if size > LONGEST} == {}
