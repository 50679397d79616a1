"""The replier against the prompts and reply forms that it shares no code with."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anthropic
import pytest
from pydantic import BaseModel

from posology.llm.schema import response_schema
from posology.query import make_query
from posology.testing import echo
from posology.text.quotes import DropReason, locate
from posology.types import Citation, Excerpt, Form, Passage, Sentence
from prompts.answer import AnswerReply, render_answer, reply_schema
from prompts.extract import ExtractReply, render_extract
from prompts.reduce import ReduceReply, Sourced, reduce_schema, render_reduce
from prompts.template import Rendered

QUERY = make_query("Does aspirin prevent stroke?")
TEXT = "Yes. Aspirin (75 mg, i.e. a low dose) lowered the risk by 1.5 points. Bleeding was rare."
FIRST = "Aspirin (75 mg, i.e. a low dose) lowered the risk by 1.5 points."
Body = Callable[[Rendered, type[BaseModel] | None], dict[str, Any]]


def passage(number: int, text: str = TEXT) -> Passage:
    return Passage(id=f"p{number}", title="A trial. With a title", text=text, year=2001)


def excerpt(number: int, text: str = TEXT, start: int = 0) -> Excerpt:
    shown = (Sentence(start=start, end=len(text)),)
    return Excerpt(passage=passage(number, text), sentences=shown)


def finding(number: int) -> Sourced:
    citation = Citation(passage_id=f"p{number}", start=5, end=5 + len(FIRST), quote=FIRST)
    return Sourced(
        statement=f"Aspirin helped in trial {number}.",
        passage=passage(number),
        rank=number,
        citations=(citation,),
    )


@pytest.fixture(params=["openai", "anthropic"])
def body(request: pytest.FixtureRequest) -> Body:
    def openai(rendered: Rendered, schema: type[BaseModel] | None) -> dict[str, Any]:
        messages = [{"role": str(m.role), "content": m.content} for m in rendered.messages]
        asked: dict[str, Any] = {"model": "m", "messages": messages}
        if schema is not None:
            wanted = response_schema(schema)
            inner = {"name": wanted.name, "schema": wanted.schema, "strict": wanted.strict}
            asked["response_format"] = {"type": "json_schema", "json_schema": inner}
        return asked

    def messages(rendered: Rendered, schema: type[BaseModel] | None) -> dict[str, Any]:
        system, user = (m.content for m in rendered.messages)
        asked: dict[str, Any] = {"system": system, "messages": [{"role": "user", "content": user}]}
        if schema is not None:
            wanted = anthropic.transform_schema(schema)
            asked["output_config"] = {"format": {"type": "json_schema", "schema": wanted}}
        return asked

    return openai if request.param == "openai" else messages


def test_an_answer_quotes_the_first_sentence_that_is_long_enough(body: Body) -> None:
    rendered = render_answer(QUERY, [excerpt(1), excerpt(2)])
    reply = AnswerReply.model_validate_json(echo(body(rendered, AnswerReply)))
    assert reply.answerable
    assert (reply.answer, reply.choice) == (FIRST, None)
    (quote,) = reply.quotes
    assert (quote.passage, quote.quote) == ("P1", FIRST)
    assert not isinstance(locate(quote.quote, TEXT), DropReason)


def test_a_verdict_is_one_of_those_that_are_allowed(body: Body) -> None:
    query = make_query("Does aspirin prevent stroke?", form=Form.YES_NO_MAYBE)
    schema = reply_schema(query, 1)
    reply = schema.model_validate_json(echo(body(render_answer(query, [excerpt(1)]), schema)))
    assert reply.choice == query.choices[0]


def test_what_is_left_out_of_an_excerpt_is_not_quoted_across(body: Body) -> None:
    rendered = render_answer(QUERY, [excerpt(1, start=5)])
    assert "[…] Aspirin" in rendered.messages[1].content
    reply = AnswerReply.model_validate_json(echo(body(rendered, AnswerReply)))
    assert [q.quote for q in reply.quotes] == [FIRST]


def test_with_nothing_to_quote_it_refuses(body: Body) -> None:
    excerpts = [excerpt(1, text="Too short.")]
    rendered = render_answer(QUERY, excerpts)
    reply = AnswerReply.model_validate_json(echo(body(rendered, AnswerReply)))
    assert (reply.answerable, reply.quotes) == (False, [])
    rendered = render_extract(QUERY, excerpts)
    assert ExtractReply.model_validate_json(echo(body(rendered, ExtractReply))).found is False


def test_an_extraction_finds_something_in_each_passage(body: Body) -> None:
    rendered = render_extract(QUERY, [excerpt(1), excerpt(2)])
    reply = ExtractReply.model_validate_json(echo(body(rendered, ExtractReply)))
    assert reply.found
    quotes = [[(q.passage, q.quote) for q in found.quotes] for found in reply.findings]
    assert quotes == [[("P1", FIRST)], [("P2", FIRST)]]


@pytest.mark.parametrize(("number", "claims"), [(1, 0), (3, 1)])
def test_a_summary_rests_on_the_findings(number: int, claims: int, body: Body) -> None:
    rendered = render_reduce(QUERY, [finding(n) for n in range(number)])
    reply = ReduceReply.model_validate_json(echo(body(rendered, ReduceReply)))
    assert reply.answerable
    assert reply.evidence == ["F1", "F2"][:number]
    assert len(reply.claims) == claims
    assert reply.answer == "Aspirin helped in trial 0."
    query = make_query("Does aspirin prevent stroke?", form=Form.YES_NO)
    schema = reduce_schema(query.choices, 1)
    rendered = render_reduce(query, [finding(1)])
    assert schema.model_validate_json(echo(body(rendered, schema))).choice == query.choices[0]


def test_without_a_schema_the_prompt_tells(body: Body) -> None:
    answer = echo(body(render_answer(QUERY, [excerpt(1)]), None))
    assert AnswerReply.model_validate_json(answer).answerable
    summary = echo(body(render_reduce(QUERY, [finding(1)]), None))
    assert ReduceReply.model_validate_json(summary).evidence == ["F1"]


def test_any_request_gets_a_reply() -> None:
    for asked in ({}, {"messages": [{"role": "user", "content": [{"type": "text"}]}]}):
        assert json.loads(echo(asked))["answerable"] is False
