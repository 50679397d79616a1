"""What :mod:`evals.live` asks beside the product: a plain RAG of one prompt, and paper-qa in a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evals.live.rows import graded, query_of
from posology.errors import PosologyError
from posology.text.refusals import is_refusal

if TYPE_CHECKING:
    from evals.live.sets import Asked
    from posology.types import Retrieved

#: words of paper-qa's reply that is none
_CANNOT = "I CANNOT ANSWER"
_VERDICT = re.compile(r"verdict\W+(\w+)", re.IGNORECASE)


def plain_prompt(one: Asked, passages: Sequence[Retrieved]) -> str:
    """Return the plain RAG's prompt: passages, question, an answer and the verdict; without passages, the question alone.

    It does not offer a refusal: with "if they do not answer it, reply NO ANSWER", Qwen2.5-Coder 0.5B replied that to each of 24
    questions (dev), 14 of which a passage answers.
    """
    if not passages:
        return f"Question: {one.question}\n\nAnswer in one to three sentences.{asked_for(one)}"
    shown = "\n\n".join(
        f"[{i}] {p.passage.title}\n{p.passage.text}" for i, p in enumerate(passages, 1)
    )
    return (
        f"{shown}\n\nQuestion: {one.question}\n\nAnswer from these passages in one to three sentences, with the numbers "
        f"of the passages in brackets.{asked_for(one)}"
    )


class PeerFailed(PosologyError):
    """A peer's program did not answer."""


class Peer:
    """A program that answers a line with a line.

    Args:
        command: starts it.
    """

    def __init__(self, *command: str) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a question. Blocking."""
        given, said = self._process.stdin, self._process.stdout
        assert given is not None
        assert said is not None
        print(json.dumps(row), file=given, flush=True)
        found: dict[str, Any] = json.loads(said.readline() or '{"error": "it ended"}')
        return found


def asked_for(one: Asked) -> str:
    """Return what asks for the verdict; empty: the question has none."""
    choices = query_of(one).choices
    return f"\nEnd with a line `Verdict:` and one of: {', '.join(choices)}." if choices else ""


def read(one: Asked, reply: str) -> dict[str, Any]:
    """Return what a reply in words says."""
    choices, reply = query_of(one).choices, reply.strip()
    said = _VERDICT.findall(reply)
    word = (said[-1] if said else reply.split(" ")[0].strip(".,:*")).lower()
    given = word if word in choices else None
    if _CANNOT in reply.upper() or (given is None and is_refusal(reply)):
        return graded(one, None, None)
    return graded(one, reply, given)
