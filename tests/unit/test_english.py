"""The repository's own lint of its English: phrases that readers stumbled over must not come back.

It reads docstrings, help texts, messages of errors, ``#:`` comments, the comments of Lua scripts, and the prose of the
pages; and it names the locals of long functions that do not say what they hold.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
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
#: names that say nothing of what they hold, and how many lines a reader may have to keep one in mind
UNTYPED, SPAN = frozenset(("found", "kept", "one", "said")), 10
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
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


def functions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions and methods of a module; one inside another counts within the outer."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, FUNCTIONS):
            yield child
        else:
            yield from functions(child)


def mentions(scope: ast.AST, long: set[str]) -> Iterator[tuple[str, int, bool]]:
    """Untyped names of ``scope``, with the line of each mention and whether it binds the name.

    A comprehension's variables are its own: those that it holds for too many lines are added to ``long``.
    """
    for node in ast.iter_child_nodes(scope):
        inner = [*mentions(node, long)]
        if isinstance(node, COMPREHENSIONS):
            own = {
                name.id
                for loop in node.generators
                for name in ast.walk(loop.target)
                if isinstance(name, ast.Name)
            }
            long |= far_apart(mention for mention in inner if mention[0] in own)
            inner = [mention for mention in inner if mention[0] not in own]
        yield from inner
        if isinstance(node, ast.Name) and node.id in UNTYPED:
            yield node.id, node.lineno, isinstance(node.ctx, ast.Store)
        if isinstance(node, ast.arg) and node.arg in UNTYPED:
            yield node.arg, node.lineno, True


def far_apart(named: Iterable[tuple[str, int, bool]]) -> set[str]:
    """Bound names whose first and last mentions are more than ``SPAN`` lines apart."""
    lines, bound = defaultdict[str, list[int]](list), set[str]()
    for name, line, binds in named:
        lines[name].append(line)
        if binds:
            bound.add(name)
    return {name for name in bound if max(lines[name]) - min(lines[name]) > SPAN}


def untyped_locals(path: Path) -> Iterator[str]:
    where = path.relative_to(ROOT)
    for function in functions(ast.parse(path.read_text(encoding="utf-8"))):
        long = set[str]()
        long |= far_apart(mentions(function, long))
        yield from (f"{where}:{function.lineno}: {function.name}: {name}" for name in sorted(long))


def test_no_phrase_that_readers_stumble_over() -> None:
    files = [
        path
        for package in CODE
        for kind in ("*.py", "*.lua")
        for path in sorted((ROOT / package).rglob(kind))
    ]
    files += [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    assert [fault for path in files for fault in faults(path)] == []


def test_locals_say_what_they_are() -> None:
    """A local that is read far from where it is bound is named after what it holds."""
    files = [
        path
        for package in (*CODE, "prompts", "training")
        for path in sorted((ROOT / package).rglob("*.py"))
    ]
    assert [fault for path in files for fault in untyped_locals(path)] == []
