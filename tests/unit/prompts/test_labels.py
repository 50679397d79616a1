"""Labels in the schemas of replies: what a provider that enforces them lets a model name."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anthropic
import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from posology.llm.schema import response_schema
from posology.query import make_query
from prompts.answer import AnswerReply, quote_schema, reply_schema, statement_schema
from prompts.extract import ExtractReply, extract_schema
from prompts.labels import FORMS, MOST
from prompts.reduce import ReduceReply, reduce_schema
from prompts.rewrite import RewriteReply, SummaryReply, rewrite_schema, summary_schema

QUERY = make_query("Is it?", form="yes_no")


def an_answer(label: str) -> dict[str, Any]:
    quotes = [{"passage": label, "quote": "it is"}]
    return {"answerable": True, "answer": "Yes.", "verdict": "yes", "quotes": quotes}


def an_extraction(label: str) -> dict[str, Any]:
    quotes = [{"passage": label, "quote": "it is"}]
    return {"found": True, "findings": [{"statement": "It is.", "quotes": quotes}]}


def a_reduction(label: str) -> dict[str, Any]:
    claim = {"claim": "It is.", "resolution": "none", "reason": "", "opposing": []}
    return {
        "answerable": True,
        "answer": "Yes.",
        "evidence": [],
        "claims": [{**claim, "supporting": [label]}],
    }


FORMS_OF_REPLIES: list[Any] = [
    pytest.param(AnswerReply, lambda n: reply_schema(QUERY, n), an_answer, "P", id="answer"),
    pytest.param(ExtractReply, extract_schema, an_extraction, "P", id="extract"),
    pytest.param(ReduceReply, lambda n: reduce_schema((), n), a_reduction, "F", id="reduce"),
    pytest.param(
        RewriteReply,
        rewrite_schema,
        lambda one: {"passages": [{"passage": one, "text": "It."}]},
        "P",
        id="rewrite",
    ),
    pytest.param(
        SummaryReply,
        summary_schema,
        lambda one: {"summaries": [{"passage": one, "summary": "It."}]},
        "P",
        id="summary",
    ),
]
every_form = pytest.mark.parametrize(("base", "form", "reply", "letter"), FORMS_OF_REPLIES)
Form = Callable[[int], type[BaseModel]]
MakeReply = Callable[[str], dict[str, Any]]


def sent(form: type[BaseModel]) -> list[dict[str, Any]]:
    """The schema as either provider gets it."""
    wanted = response_schema(form)
    assert wanted.strict
    return [wanted.schema, anthropic.transform_schema(form)]


@every_form
def test_only_what_is_shown_can_be_named(
    base: type[BaseModel], form: Form, reply: MakeReply, letter: str
) -> None:
    narrow = form(3)
    assert issubclass(narrow, base)
    assert narrow.__name__ == base.__name__
    for schema in sent(narrow):
        check = Draft202012Validator(schema)
        assert all(check.is_valid(reply(f"{letter}{n}")) for n in (1, 2, 3))
        assert not any(check.is_valid(reply(bad)) for bad in (f"{letter}4", f"[{letter}1]", ""))


@every_form
def test_a_reply_that_no_schema_bound_is_read_as_before(
    base: type[BaseModel], form: Form, reply: MakeReply, letter: str
) -> None:
    """A label in brackets is understood, and one that was not shown costs no repair."""
    for given in (f"[{letter.lower()}1]", f"{letter}9"):
        assert isinstance(form(3).model_validate(reply(given)), base)


@every_form
def test_beyond_what_strict_mode_takes_any_label_may_be_named(
    base: type[BaseModel],
    form: Form,
    reply: MakeReply,
    letter: str,
) -> None:
    for labels, free in ((MOST, False), (MOST + 1, True), (0, True)):
        for schema in sent(form(labels)):
            check = Draft202012Validator(schema)
            assert check.is_valid(reply(f"{letter}{MOST + 1}")) is free


@every_form
def test_the_longest_enumeration_is_within_strict_mode(
    base: type[BaseModel],
    form: Form,
    reply: MakeReply,
    letter: str,
) -> None:
    """1,000 values a schema; and the schema holds each label once."""
    text = json.dumps(response_schema(form(MOST)).schema)
    assert text.count(f'"{letter}{MOST}"') == 1
    values = [node for node in nodes(response_schema(form(MOST)).schema) if "enum" in node]
    assert sum(len(node["enum"]) for node in values) <= 1_000


def nodes(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [node for one in value for node in nodes(one)]
    if not isinstance(value, dict):
        return []
    return [value, *(node for one in value.values() for node in nodes(one))]


def test_fields_keep_their_descriptions() -> None:
    for narrow, base in ((quote_schema(2), quote_schema(0)), (extract_schema(2), ExtractReply)):
        for name, field in narrow.model_fields.items():
            assert field.description == base.model_fields[name].description


def test_forms_are_cached_within_a_bound() -> None:
    assert extract_schema(2) is extract_schema(2)
    assert reduce_schema(("yes", "no"), 2) is reduce_schema(("yes", "no"), 2)
    assert extract_schema(2, "sentences") is extract_schema(2, "sentences")
    assert reduce_schema(("yes",), 2, "sentences") is reduce_schema(("yes",), 2, "sentences")
    for cached in (quote_schema, statement_schema, rewrite_schema, summary_schema):
        assert cached.cache_info().maxsize == FORMS
