"""The six import packages are ours alone, light to import, and complete in the wheel."""

from __future__ import annotations

import ast
import hashlib
import importlib
import os
import re
import subprocess
import sys
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest

PACKAGES = ("workers", "orchestrator", "strategies", "policies", "prompts", "posology")
HEAVY = (
    "torch",
    "transformers",
    "sentence_transformers",
    "lancedb",
    "pyarrow",
    "openai",
    "anthropic",
    "pydantic",
    "numpy",
    "celery",
    "redis",
    "tenacity",
    "rich",
)

pytestmark = pytest.mark.smoke


@pytest.mark.parametrize("package", PACKAGES)
def test_package_belongs_to_this_distribution_alone(package: str) -> None:
    owners = set(packages_distributions().get(package, ()))
    # an editable install lists no packages; then nobody else may list this one
    assert owners <= {"posology"}
    assert owners or not os.environ.get("POSOLOGY_EXPECT_SITE")


def test_every_imported_package_is_declared() -> None:
    metadata = distribution("posology").requires or []
    declared = {re.split(r"[^\w.-]", one)[0].lower().replace("_", "-") for one in metadata}
    owners = packages_distributions()
    for package in PACKAGES:
        folder = Path(importlib.import_module(package).__file__ or "").parent
        for file in sorted(folder.rglob("*.py")):
            for name in _imported(ast.parse(file.read_text(encoding="utf-8"))):
                if name not in sys.stdlib_module_names and name not in PACKAGES:
                    known = {one.lower().replace("_", "-") for one in owners.get(name, [])}
                    assert known & declared, f"{file} imports {name}"


def _imported(tree: ast.AST) -> set[str]:
    """Return the names of the packages that a module imports, wherever it does."""
    names = [
        name
        for node in ast.walk(tree)
        for name in (
            [one.name for one in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and node.level == 0
            else []
        )
    ]
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("package", PACKAGES)
def test_package_is_imported_from_where_it_should_be(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__file__ is not None
    expected = os.environ.get("POSOLOGY_EXPECT_SITE")
    root = Path(expected) if expected else Path(__file__).resolve().parents[2]
    assert Path(module.__file__).is_relative_to(root)
    assert (Path(module.__file__).parent / "py.typed").exists()


def test_templates_and_sample_are_packed() -> None:
    from importlib.resources import files

    assert (files("prompts") / "templates" / "answer.md").is_file()
    assert (files("posology.corpus") / "sample" / "notes.jsonl").is_file()
    assert (files("orchestrator.console") / "templates" / "layout.html").is_file()


def test_scripts_of_others_are_as_published() -> None:
    from importlib.resources import files

    static = files("orchestrator.console") / "static"
    said = (static / "LICENSES.md").read_text(encoding="utf-8")
    for name in ("htmx.min.js", "htmx-sse.min.js"):
        digest = hashlib.sha256((static / name).read_bytes()).hexdigest()
        assert f"| `{name}` |" in said
        assert digest in said


def test_models_are_packed_with_their_cards() -> None:
    from importlib.resources import files

    models = files("strategies.compression") / "models"
    for name in ("late-codec.npz", "late-pruner.npz", "MODEL_CARD.md"):
        assert (models / name).is_file(), name
    reading = files("posology.reading") / "models"
    for name in ("reader.onnx", "judge.onnx", "MODEL_CARD.md"):
        assert (reading / name).is_file(), name
    assert (files("strategies.compression.wording") / "data" / "drug_names.txt").is_file()
    for name in ("sentence-roles.npz", "MODEL_CARD.md"):
        assert (files("posology.text") / "data" / name).is_file(), name
    assert (files("policies") / "models" / "preflight.json").is_file()


@pytest.mark.parametrize("module", ["posology.types", "posology.errors", "posology.seams"])
def test_the_values_import_nothing_heavy(module: str) -> None:
    script = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    assert module in loaded
    assert not {name.partition(".")[0] for name in loaded} & set(HEAVY)
