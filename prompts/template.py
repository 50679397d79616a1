"""Templates as files: each rendered prompt has the hash of its template."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template

from posology.types import Message, PromptId, QuoteForm, Role

_BOUNDARY = "\n%% user %%\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rendered:
    """Messages, and the template that rendered them."""

    messages: tuple[Message, ...]
    prompt: PromptId
    #: where shorter prompts of the same question end in the user message, in characters, ascending
    ends: tuple[int, ...] = ()


@cache
def _load(name: str) -> tuple[PromptId, str, Template]:
    content = (files("prompts") / "templates" / f"{name}.md").read_text(encoding="utf-8")
    system, boundary, user = content.partition(_BOUNDARY)
    if not boundary:
        raise ValueError(f"template {name} has no line '%% user %%'")
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    return PromptId(name=name, digest=digest), system.strip(), Template(user.strip())


def render(name: str, **values: str) -> Rendered:
    """Fill a template's user part; the system part is constant, so that providers can cache it.

    Values are inserted as they are: a ``$`` inside one is never expanded.

    Raises:
        KeyError: a value that the template names is missing.
    """
    prompt, system, user = _load(name)
    return Rendered(
        messages=(
            Message(role=Role.SYSTEM, content=system),
            Message(role=Role.USER, content=user.substitute(values)),
        ),
        prompt=prompt,
    )


def form(name: str, quotes: QuoteForm) -> str:
    """Return the name of a prompt's template for a form of quotes."""
    return f"{name}_copied" if quotes == "copied" else name


def closing(name: str, **values: str) -> str:
    """Return the end of a template's user part, filled: what stands behind the passages."""
    _, _, user = _load(name)
    return Template(user.template.rpartition("$passages")[2]).substitute(values)


def digests(names: Sequence[str]) -> dict[str, str]:
    """Return the digest of each template, by its name."""
    return {name: _load(name)[0].digest for name in names}
