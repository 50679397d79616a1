"""The prompt of direct RAG: a cited answer or a refusal; and that of one more reply, which any answer can get.

The question stands before the passages and again after them: models use the two ends of a prompt
best (BriefContext, section 1, 'spotlight positions'; its prompts put the query first, section 5.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AliasChoices, BeforeValidator, Field, WithJsonSchema, field_validator
from pydantic.json_schema import SkipJsonSchema

from posology.types import Excerpt, Form, Message, Query, QuoteForm, Role
from prompts.fence import BETWEEN, fence
from prompts.labels import FORMS, ReplyForm, items, narrowed, one_of
from prompts.lengths import ANSWER_QUOTES, STATEMENT_SENTENCES, STATEMENTS
from prompts.sentences import fence_numbered, sentence_name
from prompts.template import Rendered, closing, form, render

#: between the end of an earlier prompt and the passages that are added to it
_FURTHER = "\n\nFurther passages:\n\n"


#: Names of a verdict in replies. Under ``verdict``, small models more often give the one that their statements say than under
#: ``choice``, its name in older replies; and behind the statements: before them, it decides what they say
_NAMES: Final[Mapping[str, Any]] = {
    "validation_alias": AliasChoices("verdict", "choice"),
    "serialization_alias": "verdict",
}
#: a verdict that no schema asks for
_Unsent = SkipJsonSchema[str | None]
#: one of the question's choices
Verdict = Annotated[str | None, Field(default=None, **_NAMES)]


class Quote(ReplyForm):
    """Words that the model says stand in a passage."""

    passage: str = Field(description="label of the passage, e.g. P1")
    quote: str = Field(description="copied from that passage character by character")


class AnswerReply(ReplyForm):
    """What a model replies to the answer prompt."""

    answerable: bool = Field(description="whether the passages answer the question")
    answer: str = Field(description="the answer, or what is missing")
    choice: Verdict = Field(description="the verdict")
    quotes: list[Quote] = Field(description="the evidence; empty if not answerable")


class Said(ReplyForm):
    """One statement of an answer, and the sentences that it rests on."""

    text: str
    sentences: list[str]


class Cited(ReplyForm):
    """What every reply has that answers and names sentences; the prompts describe the fields."""

    answerable: bool
    statements: list[Said]
    choice: Verdict

    @field_validator("statements")
    @classmethod
    def _stating(cls, given: list[Said]) -> list[Said]:
        """Leave out what states nothing: small models put the question back."""
        return [one for one in given if not one.text.strip().endswith("?")]

    @property
    def answer(self) -> str:
        """Return the statements as one text."""
        return " ".join(text for one in self.statements if (text := one.text.strip()))


class CitedReply(Cited):
    """What a model replies to the answer prompt where it names sentences."""

    #: see :func:`~posology.llm.structured.read_cut`
    PARTIAL: ClassVar[str] = "statements"


def render_answer(
    query: Query,
    excerpts: Sequence[Excerpt],
    quotes: QuoteForm = "copied",
    *,
    before: Sequence[int] = (),
    own: str | None = None,
) -> Rendered:
    """Render the messages for a question over excerpts.

    Args:
        query: the question.
        excerpts: labelled 1, 2, … in their order, or P1, P2, … where words are copied.
        quotes: how the reply names its evidence.
        before: numbers of excerpts that earlier prompts showed, ascending: the prompt begins as each of them, whole.
        own: digest of the user's own templates; ``None``: the packaged ones.
    """
    copied, name = quotes == "copied", form("answer", quotes)
    fenced = (fence if copied else fence_numbered)(excerpts, question=query.text)
    choices = render_choices(query)
    end = closing(name, own=own, question=query.text, choices=choices, code=fenced.code)
    text, ends = "", []
    for first, last in pairwise((0, *before)):
        text += BETWEEN.join(fenced.blocks[first:last]) + end
        ends.append(len(text))
        text += _FURTHER
    text += BETWEEN.join(fenced.blocks[before[-1] if before else 0 :])
    rendered = render(
        name,
        own=own,
        question=query.text,
        choices=choices,
        code=fenced.code,
        passages=text,
    )
    # what stands before the passages is as long in every prompt
    opening = len(rendered.messages[-1].content) - len(text) - len(end)
    return replace(rendered, ends=tuple(opening + place for place in ends))


def render_repair(before: tuple[Message, ...], reply: str, problems: Sequence[str]) -> Rendered:
    """Render the continued conversation, in which an answer is sent back for sentences that its evidence does not support.

    Args:
        before: messages that the reply is to.
        reply: the reply.
        problems: one line for each sentence that is not supported. They repeat no words of the reply: those may come from a
            passage, and would stand outside its fence.
    """
    asked = render("repair", problems="\n".join(f"- {one}" for one in problems))
    said = Message(role=Role.ASSISTANT, content=reply or "(nothing)")
    return Rendered(messages=(*before, said, asked.messages[-1]), prompt=asked.prompt)


def reply_schema(
    query: Query, passages: int, quotes: QuoteForm = "copied"
) -> type[AnswerReply] | type[CitedReply]:
    """Return the form of a reply: with the question's choices, and the labels or the numbers of passages.

    Args:
        query: the question.
        passages: number of passages that are shown.
        quotes: how the reply names its evidence.
    """
    return (_schema if quotes == "copied" else _cited_schema)(query.choices, passages)


@lru_cache(maxsize=FORMS)
def statement_schema(passages: int) -> Any:
    """Return the type of the list of statements, which name sentences of the first so many passages."""
    names = items(sentence_name(passages), STATEMENT_SENTENCES)
    return items(narrowed(Said, sentences=names), STATEMENTS)


def verdict(choices: tuple[str, ...]) -> dict[str, Any]:
    """Return the field ``choice`` of a reply's form: one of some choices; without choices, a field that is not sent.

    The schema demands a verdict of every reply, since small models gave none where it allowed null; that of a reply which
    does not answer is not read. Where no schema is enforced, null is read.
    """
    if not choices:
        return {"choice": (_Unsent, Field(default=None, **_NAMES))}
    known = {one.casefold(): one for one in choices}

    def spelled(given: Any) -> Any:
        return known.get(given.strip(" .").casefold(), given) if isinstance(given, str) else given

    narrow = Annotated[
        Literal[choices] | None,  # type: ignore[valid-type]  # known at run time only
        BeforeValidator(spelled),
        WithJsonSchema({"type": "string", "enum": list(choices)}),
    ]
    return {"choice": (narrow, Field(**_NAMES))}


@lru_cache(maxsize=FORMS)
def quote_schema(passages: int) -> type[Quote]:
    """Return the form of a quote: :class:`Quote`, from one of the first so many passages."""
    return narrowed(Quote, passage=one_of(passages))


def render_choices(query: Query) -> str:
    """Render the instruction on the verdict; empty for free questions."""
    match query.form:
        case Form.FREE:
            return ""
        case Form.CHOICE:
            options = "\n".join(f"{option.label}. {option.text}" for option in query.options)
            return f"Choices, by letter:\n{options}\n"
        case Form.YES_NO | Form.YES_NO_MAYBE:
            return f"Choices: {', '.join(query.choices)}\n"


@lru_cache(maxsize=FORMS)
def _schema(choices: tuple[str, ...], passages: int) -> type[AnswerReply]:
    return narrowed(
        AnswerReply, **verdict(choices), quotes=items(quote_schema(passages), ANSWER_QUOTES)
    )


@lru_cache(maxsize=FORMS)
def _cited_schema(choices: tuple[str, ...], passages: int) -> type[CitedReply]:
    return narrowed(CitedReply, **verdict(choices), statements=statement_schema(passages))
