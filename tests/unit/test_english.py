"""The repository's own lint of its English: phrases that readers stumbled over must not come back.

It reads docstrings, help texts, messages of errors, ``#:`` comments, the comments of Lua scripts, and the prose of the
pages.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: without ``prompts``, whose texts are read by models
CODE = ("orchestrator", "policies", "posology", "strategies", "workers")
FORBIDDEN = re.compile(
    r"\b(?:whoever|nobody|somebody|that which|goes on to|(?:is|are) told|tells? of (?:it|them)sel\w+|"
    r"for rows that do not say|purse|hands? back|handed back|in vain|no more than \S+ to|"
    r"holds? up everybody|let settle)\b",
    re.IGNORECASE,
)
#: a definition names the thing: "Remaining budget." and not "What is left."
DEFINITION = re.compile(r"(?:What|Who|Which|Of|For which)\b")
#: a block of whole-line comments, or one after a statement; no string of the scripts has two hyphens
LUA_COMMENT = re.compile(r"(?:^[ \t]*--.*\n)+|--.*$", re.MULTILINE)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def definitions(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Texts that define something: docstrings, help texts, descriptions."""
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
            yield node.body[0].lineno, text
        if isinstance(node, ast.keyword) and node.arg in ("help", "description"):
            yield from strings(node)


def strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Comments of a Lua script, with their lines joined."""
    for match in LUA_COMMENT.finditer(source):
        text = " ".join(line.strip().lstrip("-").strip() for line in match[0].splitlines())
        yield source.count("\n", 0, match.start()) + 1, text


def faults(path: Path) -> Iterator[str]:
    source, where = path.read_text(encoding="utf-8"), path.relative_to(ROOT)
    lines = enumerate(source.splitlines(), 1)
    if path.suffix == ".py":
        tree = ast.parse(source)
        found = [*definitions(tree)]
        yield from (f"{where}:{n}: {t[:60]!r}" for n, t in found if DEFINITION.match(t))
        found += [
            one for node in ast.walk(tree) if isinstance(node, ast.Raise) for one in strings(node)
        ]
        found += [(n, text) for n, text in lines if text.lstrip().startswith("#:")]
    elif path.suffix == ".lua":
        found = [*comments(source)]
        yield from (f"{where}:{n}: {t[:60]!r}" for n, t in found if DEFINITION.match(t))
    else:
        found = [*lines]
    yield from (f"{where}:{n}: {m[0]!r}" for n, t in found for m in FORBIDDEN.finditer(t))


def test_no_phrase_that_readers_stumble_over() -> None:
    files = [
        path
        for package in CODE
        for kind in ("*.py", "*.lua")
        for path in sorted((ROOT / package).rglob(kind))
    ]
    files += [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    assert [fault for path in files for fault in faults(path)] == []
