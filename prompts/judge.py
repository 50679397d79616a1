"""The prompt that has a model judge whether quotes bear statements out, and the form of its reply."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from posology.types import Query, Stance
from prompts.fence import enclose, line
from prompts.labels import FORMS, ReplyForm, narrowed
from prompts.template import Rendered, render

#: what a reply calls each stance
STANCES = {
    "supported": Stance.SUPPORTS,
    "contradicted": Stance.CONTRADICTS,
    "not said": Stance.SILENT,
}


def _spelled(given: object) -> object:
    return given.strip(" .").lower().replace("_", " ") if isinstance(given, str) else given


Word = Annotated[Literal["supported", "contradicted", "not said"], BeforeValidator(_spelled)]


class JudgeReply(ReplyForm):
    """Reply to :func:`render_judge`."""

    verdicts: list[Word]


def render_judge(query: Query, given: Sequence[tuple[str, str]]) -> Rendered:
    """Render the messages.

    Args:
        query: the question that the statements answer.
        given: each statement with its evidence.
    """
    # each on one line: a statement with a line "evidence:" would pose as its own evidence
    bodies = [f"statement: {line(said)}\nevidence: {line(text)}" for said, text in given]
    fenced = enclose(bodies, "S", question=query.text)
    return render(
        "judge",
        question=query.text,
        code=fenced.code,
        statements=fenced.text,
        count=str(len(bodies)),
    )


@lru_cache(maxsize=FORMS)
def verdict_schema(statements: int) -> type[JudgeReply]:
    """Return the form of a reply: one verdict for each of so many statements."""
    some = Annotated[list[Word], Field(min_length=statements, max_length=statements)]
    return narrowed(JudgeReply, verdicts=some)
