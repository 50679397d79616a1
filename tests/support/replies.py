"""Replies in the form that a call asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from posology.text.numbering import name, numbered
from prompts.answer import AnswerReply, CitedReply, Quote, Said
from prompts.extract import CitedExtract, CitedStatement, ExtractReply
from prompts.fence import position
from prompts.reduce import LETTER, CitedReduce, ReduceReply

if TYPE_CHECKING:
    from posology.types import Call

    Copied = AnswerReply | ExtractReply | ReduceReply
    Reply = Copied | CitedReply | CitedExtract | CitedReduce


def copying(
    answer: str, *quotes: tuple[str, str], answerable: bool = True, choice: str | None = None
) -> AnswerReply:
    """An answer with quotes, each with the label of its passage."""
    found = [Quote(passage=passage, quote=quote) for passage, quote in quotes]
    return AnswerReply(answerable=answerable, answer=answer, choice=choice, quotes=found)


def in_form(call: Call, reply: Copied) -> Reply:
    """A reply that copies quotes, with the numbers of their sentences instead where the call asks for those."""
    if call.quotes == "copied":
        return reply
    if isinstance(reply, ExtractReply):
        return CitedExtract(
            found=reply.found,
            findings=[
                CitedStatement(
                    statement=one.statement, sentences=[_number(call, q) for q in one.quotes]
                )
                for one in reply.findings
            ],
        )
    if isinstance(reply, ReduceReply):
        places = [position(label, LETTER) for label in reply.evidence]
        names = [f"{place + 1}.1" for place in places if place is not None]
        return CitedReduce(
            answerable=reply.answerable,
            statements=[Said(text=reply.answer, sentences=names)],
            choice=reply.choice,
            claims=reply.claims,
        )
    return CitedReply(
        answerable=reply.answerable,
        statements=[Said(text=reply.answer, sentences=[_number(call, q) for q in reply.quotes])],
        choice=reply.choice,
    )


def _number(call: Call, quote: Quote) -> str:
    place = position(quote.passage)
    if place is None or place >= len(call.excerpts):
        return "999.1"
    excerpt = call.excerpts[place]
    for at, spans in enumerate(numbered(excerpt)):
        if quote.quote in " ".join(span.of(excerpt.passage.text) for span in spans):
            return name(place, at)
    return name(place, 998)
