"""The prompt of one row of an evidence table: a document, then the fields to fill in from it.

The document comes first, and neither the code of its fences nor the form of the reply depends on the fields. So all prompts
over one document begin alike, and a provider's cache can hold that beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BeforeValidator

from posology.types import Excerpt
from posology.types.tables import Confidence, Field, FieldKind
from prompts.fence import enclose, line
from prompts.labels import FORMS, ReplyForm, items, narrowed
from prompts.lengths import STATEMENT_SENTENCES
from prompts.sentences import sentence_name, show
from prompts.template import Rendered, closing, render

NAME = "table"
#: most fields of one call
FIELDS = 12
_KINDS = {FieldKind.TEXT: "text", FieldKind.NUMBER: "a number"}


def _as_text(given: Any) -> Any:
    # models write numbers as numbers
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    return str(given) if is_number else given


class CellReply(ReplyForm):
    """The value of one field; the prompt describes the parts."""

    field: str
    value: Annotated[str | None, BeforeValidator(_as_text)]
    sentences: list[str]
    confidence: Confidence


class TableReply(ReplyForm):
    """What a model replies to the prompt of a table."""

    cells: list[CellReply]


def render_table(excerpts: Sequence[Excerpt], fields: Sequence[Field]) -> Rendered:
    """Render the messages for a document, or a part of one.

    Args:
        excerpts: the document's, in order; all have its title.
        fields: at most :data:`FIELDS`.

    Returns:
        The messages. The document ends at the only one of their ``ends``.
    """
    rows = [f"title: {line(excerpts[0].passage.title)}"] if excerpts[0].passage.title else []
    section = None
    for place, excerpt in enumerate(excerpts):
        if excerpt.passage.section not in (None, section):
            section = excerpt.passage.section
            rows.append(f"section: {line(section or '')}")
        rows += show(excerpt, place)
    fenced = enclose(["\n".join(rows)], "")
    asked = {"fields": "\n".join(map(_asked, fields)), "code": fenced.code}
    rendered = render(NAME, passages=fenced.text, **asked)
    end = len(rendered.messages[-1].content) - len(closing(NAME, **asked))
    return replace(rendered, ends=(end,))


@lru_cache(maxsize=FORMS)
def table_schema(excerpts: int) -> type[TableReply]:
    """Return the form of a reply over so many excerpts; it is the same for all fields."""
    names = items(sentence_name(excerpts), STATEMENT_SENTENCES)
    return narrowed(TableReply, cells=items(narrowed(CellReply, sentences=names), FIELDS))


def _asked(field: Field) -> str:
    kind = _KINDS.get(field.kind) or f"one of: {' | '.join(map(line, field.choices))}"
    return f"- {field.name} ({kind}): {line(field.question)}"
