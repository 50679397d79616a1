"""Templates as files: each rendered prompt has the hash of its template.

A user may replace templates by a folder of their own. A set of them is known by its digest alone, which requests,
decisions and jobs carry, so that no process renders another text than the one that was asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template
from types import MappingProxyType

from posology.errors import BadFile, PromptsMismatch
from posology.types import Message, PromptId, QuoteForm, Role

_BOUNDARY = "\n%% user %%\n"
#: hexadecimal digits of a digest
_DIGITS = 16
#: templates that a folder may replace, and the placeholder of what they fence
OWN: Mapping[str, str] = MappingProxyType(
    {
        f"{name}{form}": blocks
        for name, blocks in (
            ("answer", "passages"),
            ("extract", "passages"),
            ("extract_answer", "passages"),
            ("reduce", "findings"),
            ("reduce_answers", "findings"),
        )
        for form in ("", "_copied")
    }
    | {"summarise": "passages", "rewrite": "passages"}
)
#: maximum length of a template, characters: it is sent with every call
LONGEST = 16_000
#: a file of the folder that is no template
_README = "README.md"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rendered:
    """Messages, and the template that rendered them."""

    messages: tuple[Message, ...]
    prompt: PromptId
    #: where shorter prompts of the same question end in the user message, in characters, ascending
    ends: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Parts:
    """A template, divided."""

    prompt: PromptId
    #: the same for every question, so that providers can cache it
    system: str
    user: Template


#: templates of users' own by the digest of their set, then by name. A digest says all, so this is no state of a question
_sets: dict[str, Mapping[str, str]] = {}


def render(name: str, *, own: str | None = None, **values: str) -> Rendered:
    """Fill a template's user part; the system part is constant, so that providers can cache it.

    Values are inserted as they are: a ``$`` inside one is never expanded.

    Args:
        name: of the template.
        own: digest of the set of templates that replace packaged ones; ``None``: none.
        values: of the placeholders.

    Raises:
        KeyError: a value that the template names is missing.
        PromptsMismatch: this process has not loaded that set.
    """
    parts = _load(name, own)
    return Rendered(
        messages=(
            Message(role=Role.SYSTEM, content=parts.system),
            Message(role=Role.USER, content=parts.user.substitute(values)),
        ),
        prompt=parts.prompt,
    )


def form(name: str, quotes: QuoteForm) -> str:
    """Return the name of a prompt's template for a form of quotes."""
    return f"{name}_copied" if quotes == "copied" else name


def closing(name: str, *, own: str | None = None, **values: str) -> str:
    """Return the end of a template's user part, filled: what stands behind the passages."""
    user = _load(name, own).user
    return Template(user.template.rpartition("$passages")[2]).substitute(values)


def digests(names: Sequence[str], *, own: str | None = None) -> dict[str, str]:
    """Return the digest of each template, by its name.

    Raises:
        PromptsMismatch: this process has not loaded the set ``own``.
    """
    return {name: _load(name, own).prompt.digest for name in names}


@cache
def load_own(folder: Path) -> str:
    """Read a folder of templates that replace packaged ones, once a process, and return its digest.

    A file ``NAME.md`` replaces the packaged template of that name; what the folder lacks stays as packaged. A template
    has a system part, the line ``%% user %%`` and a user part with the placeholders of the packaged one. Blocking.

    Raises:
        BadFile: the folder or a template cannot be read or used.
    """
    templates = {}
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".md")
    except OSError as error:
        raise BadFile(
            f"the folder of templates cannot be read ({error.strerror}): set POSOLOGY_PROMPTS or --prompts to a folder",
            path=str(folder),
        ) from None
    for path in paths:
        if path.name != _README:
            templates[path.stem] = _checked(path)
    if not templates:
        raise BadFile(f"the folder holds no template: add {_names()}", path=str(folder))
    digest = hashlib.sha256(
        "\0".join(part for name in sorted(templates) for part in (name, templates[name])).encode()
    ).hexdigest()[:_DIGITS]
    _sets[digest] = MappingProxyType(templates)
    return digest


def _checked(path: Path) -> str:
    """Return the text of a template of a user's own.

    Raises:
        BadFile: it cannot be read or used.
    """
    name, where = path.stem, str(path)
    if name not in OWN:
        raise BadFile(
            f"there is no template of this name to replace: choose {_names()}", path=where
        )
    try:
        with path.open("rb") as file:
            # a character has four bytes at most
            text = file.read(4 * LONGEST + 1).decode()
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=where) from None
    except UnicodeDecodeError:
        raise BadFile("the template is not UTF-8", path=where) from None
    text = text.replace("\r\n", "\n")
    if len(text) > LONGEST:
        raise BadFile(
            f"the template must have at most {LONGEST:,} characters, since every call sends it",
            path=where,
        )
    system, boundary, user = text.partition(_BOUNDARY)
    if not boundary or _BOUNDARY in user or not system.strip():
        raise BadFile(
            "the template needs a system part, one line '%% user %%' and a user part", path=where
        )
    _check_placeholders(Template(user), name, where)
    return text


def _check_placeholders(user: Template, name: str, where: str) -> None:
    """Check that a user part has the placeholders of the packaged one, and that its fence can be recognised."""
    if not user.is_valid():
        raise BadFile(
            "a '$' must begin a placeholder such as $question; write '$$' for a dollar", path=where
        )
    wanted, given = (set(one.get_identifiers()) for one in (_load(name, None).user, user))
    if given != wanted:
        wrong = sorted(given - wanted), sorted(wanted - given)
        told = [
            f"{what} {', '.join(f'${one}' for one in names)}"
            for what, names in zip(("unknown", "missing"), wrong, strict=True)
            if names
        ]
        raise BadFile(f"wrong placeholders: {'; '.join(told)}", path=where)
    blocks, text = f"${OWN[name]}", user.template
    if text.count(blocks) != 1 or text.find("$code") > text.index(blocks) or "${" in text:
        raise BadFile(
            f"{blocks} must occur once, after $code (the code of its fences); write $NAME without braces",
            path=where,
        )


def _names() -> str:
    return f"one of {', '.join(f'{name}.md' for name in OWN)}"


@cache
def _load(name: str, own: str | None) -> _Parts:
    if own is not None and own not in _sets:
        raise PromptsMismatch(
            f"this needs the templates {own}, which are not loaded here: set POSOLOGY_PROMPTS or --prompts to their "
            "folder, unchanged, and start again",
            prompts=own,
        )
    content = _sets[own].get(name) if own is not None else None
    if content is None:
        content = (files("prompts") / "templates" / f"{name}.md").read_text(encoding="utf-8")
    system, boundary, user = content.partition(_BOUNDARY)
    if not boundary:
        raise ValueError(f"template {name} has no line '%% user %%'")
    digest = hashlib.sha256(content.encode()).hexdigest()[:_DIGITS]
    return _Parts(
        prompt=PromptId(name=name, digest=digest),
        system=system.strip(),
        user=Template(user.strip()),
    )
