"""Structured replies: from text to the call's pydantic model, with one repair."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from posology.errors import (
    BudgetError,
    ContextTooLong,
    HeadroomReserved,
    SchemaViolation,
    TruncatedReply,
    UnusableReply,
)
from posology.llm.models.effort import larger_bound
from posology.llm.models.names import parse
from posology.llm.models.reasoning import after_reasoning
from posology.seams import Complete
from posology.text.repeats import endless, loops
from posology.types import Call, Completion, Finish, Message, Role

#: maximum characters of the error text in a repair
MAX_COMPLAINT = 1_000
#: output tokens by which a provider may miss the bound that it cut a reply at
SLACK = 16
#: Returns a second call with the bound on its output that is paid for, see :class:`~posology.llm.second.SecondCalls`;
#: ``None``: it is not paid for. Given the first call, its reply, and the second call.
Afford = Callable[[Call, Completion, Call], Call | None]
# line ends in a string need no escape
_decoder = json.JSONDecoder(strict=False)
#: braces of prose: no key of an object, and nothing nested
_PROSE = re.compile(r'\{\s*+[^\s{}":][^{}":]*+\}')

#: strings, which stay, and commas before the end of an object or a list
_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+")|,(?=\s*[}\]])', re.DOTALL)

#: why a second call is not made
_TOO_DEAR = "would cost more than the worst case of the call"


def _any(_call: Call, _reply: Completion, second: Call) -> Call | None:
    return second


class BadStructure(ValueError):
    """A text does not match its schema; the message says where, for the model."""


class Structured:
    """Fills :attr:`~posology.types.Completion.parsed` for calls that have a schema.

    A reply that does not validate leads to one more call at most. If its bound cut it because the model reasoned, the
    call is made again with a larger bound; else the reply is sent back to the model with the errors. Of a reply that was
    cut, what is complete is read if its schema allows it, see :func:`read_cut`. A reply of the provider's safety system is
    returned unparsed: it is a refusal, and a second call would only cost.

    Args:
        inner: sends a call.
        afford: bounds second calls by what they may cost; ``None``: they may cost anything.

    Raises:
        TruncatedReply: cut at ``max_tokens``, and a second call was cut as well, would be, or cannot be paid.
        ContextTooLong: cut before ``max_tokens``, since messages and reply filled the model's window.
        SchemaViolation: the second reply does not match the schema either, or cannot be paid; ``usage`` is that of the
            last reply.
    """

    def __init__(self, inner: Complete, afford: Afford | None = None) -> None:
        self._inner = inner
        self._afford = afford or _any

    async def __call__(self, call: Call) -> Completion:
        """Send one call, and its repair if needed."""
        completion = await self._inner(call)
        if call.schema is None or completion.finish is Finish.FILTERED:
            return completion
        try:
            return replace(completion, parsed=read(completion.text, call.schema))
        except BadStructure as error:
            complaint = str(error)
        if (larger := _with_room(call, completion)) is not None:
            how = "with a larger bound"
            second = self._afford(call, completion, larger)
            if second is None:
                raise _cut(call, completion, f"a larger bound {_TOO_DEAR}")
            try:
                completion = await self._inner(second)
            except HeadroomReserved:
                # there will be room: the caller waits, and this reply is replayed
                raise
            except BudgetError as error:
                raise _cut(call, completion, f"a larger bound was refused ({error})") from error
        elif (partial := _partial(call, completion)) is not None:
            return replace(completion, parsed=partial)
        else:
            _refuse_cut(call, completion)
            how = "after a repair"
            repair = replace(
                call, messages=repair_messages(call, after_reasoning(completion.text), complaint)
            )
            second = self._afford(call, completion, repair)
            if second is None:
                raise _unusable(
                    SchemaViolation, call, completion, f"{complaint}; a repair {_TOO_DEAR}"
                )
            completion = await self._inner(second)
        if completion.finish is Finish.FILTERED:
            return completion
        try:
            return replace(completion, parsed=read(completion.text, call.schema))
        except BadStructure as error:
            complaint = str(error)
        if (partial := _partial(second, completion)) is not None:
            return replace(completion, parsed=partial)
        _refuse_cut(second, completion)
        raise _unusable(SchemaViolation, call, completion, f"even {how}: {complaint}")


def read(text: str, schema: type[BaseModel]) -> BaseModel:
    """Validate the one top-level JSON object in a text; reasoning before it, prose and fences are tolerated.

    Prose may hold braces that begin no object, as in "from {P1}". An object that is there twice, word for word, is read
    once. An object in the model's reasoning is no reply.

    Raises:
        BadStructure: there is none, there are several, or it does not validate.
    """
    return _read(text, schema)


@lru_cache(maxsize=64)
def _read(text: str, schema: type[BaseModel]) -> BaseModel:
    """Read with a cache: the account and the caller read the same reply."""
    reply = after_reasoning(text)
    try:
        found = _only_object(reply)
    except BadStructure as error:
        where = "" if reply == text else " after its reasoning"
        raise BadStructure(f"the reply {error}{where}") from None
    try:
        return schema.model_validate_json(found)
    except ValidationError as error:
        raise BadStructure(_complaint(error)) from None


def read_cut(text: str, schema: type[BaseModel]) -> BaseModel | None:
    """Read what is complete of a reply that was cut; ``None``: that is not enough, or the schema does not allow it.

    A schema allows it by a class attribute ``PARTIAL``: the name of a list of items that each stand for themselves. The item
    that was written last is left out, since nothing says that it is complete. A field behind the list is ``None``.
    """
    name: str | None = getattr(schema, "PARTIAL", None)
    reply = after_reasoning(text)
    start = reply.find("{")
    if name is None or start < 0:
        return None
    try:
        found: Any = from_json(reply[start:], allow_partial=True)
    except ValueError:
        return None
    if not isinstance(found, dict) or not isinstance(found.get(name), list):
        return None
    if next(reversed(found)) == name:
        found[name].pop()
    if not found[name]:
        return None
    try:
        return schema.model_validate_json(json.dumps(_filled(found, schema)))
    except ValidationError:
        return None


def _filled(found: dict[str, Any], schema: type[BaseModel]) -> dict[str, Any]:
    """Return an object with ``None`` for the fields that it lacks."""
    names = [one.serialization_alias or name for name, one in schema.model_fields.items()]
    return dict.fromkeys(names) | found


def _only_object(text: str) -> str:
    """Return the one object in a text, as JSON.

    An object that breaks ends the search: what is inside it must
    not be taken for the reply.
    """
    first: str | None = None
    at = text.find("{")
    while at >= 0:
        if prose := _PROSE.match(text, at):
            at = text.find("{", prose.end())
            continue
        try:
            value, end = _decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            if (mended := _COMMA.sub(_without_comma, text[at:])) != text[at:]:
                text, at = mended, 0
                continue
            raise BadStructure(
                "holds more than one JSON object" if first else f"is not valid JSON: {error}"
            ) from None
        one = json.dumps(value)
        if first not in (None, one):
            raise BadStructure("holds more than one JSON object")
        first = one
        at = text.find("{", end)
    if first is None:
        raise BadStructure("holds no JSON object")
    return first


def _without_comma(found: re.Match[str]) -> str:
    return found[1] or ""


def verdict(call: Call, completion: Completion) -> str | None:
    """Return the name of the error in a reply's structure, for the account; ``None``: it is valid.

    An attempt whose reply needs a repair was paid for and is unusable.
    """
    if call.schema is None or completion.finish is Finish.FILTERED:
        return None
    try:
        read(completion.text, call.schema)
    except BadStructure:
        cut = completion.finish is Finish.LENGTH
        if cut and read_cut(completion.text, call.schema) is not None:
            return None
        return TruncatedReply.__name__ if cut else SchemaViolation.__name__
    return None


def repair_messages(call: Call, reply: str, complaint: str) -> tuple[Message, ...]:
    """Return the call's messages, the reply, and its errors."""
    return (
        *call.messages,
        # providers refuse an empty message
        Message(role=Role.ASSISTANT, content=reply if reply.strip() else "(empty)"),
        Message(
            role=Role.USER,
            content=(
                "Your reply cannot be used, because it does not have the structure that was asked "
                f"for:\n\n{complaint}\n\n"
                "Reply again with the same content, as one JSON object of that structure and "
                "nothing else."
            ),
        ),
    )


def _complaint(error: ValidationError) -> str:
    lines = [
        f"- {_place(item['loc'], unknown=item['type'] == 'extra_forbidden')}: {item['msg']}"
        for item in error.errors(include_url=False, include_input=False, include_context=False)
    ]
    text = "\n".join(lines)
    return text if len(text) <= MAX_COMPLAINT else text[: MAX_COMPLAINT - 1] + "…"


def _place(parts: tuple[int | str, ...], *, unknown: bool) -> str:
    """Return the place of an error. A name that the model chose is left out: it would stand outside any fence."""
    known = parts[:-1] if unknown else parts
    place = ".".join(map(str, known)) or "the object"
    return f"an unknown field of {place}" if unknown else place


def _with_room(call: Call, completion: Completion) -> Call | None:
    """Return the call with a larger bound if reasoning used the bound up; ``None``: that is not the reason."""
    reasoned = completion.usage is not None and completion.usage.reasoning > 0
    if completion.finish is not Finish.LENGTH or not (
        reasoned or not after_reasoning(completion.text).strip()
    ):
        return None
    if _fills_window(call, completion):
        return None
    larger = larger_bound(call)
    return None if larger is None else replace(call, max_tokens=larger)


def _partial(call: Call, completion: Completion) -> BaseModel | None:
    """Return what is complete of a reply that was cut; ``None``: it was not cut, or that is not enough."""
    if completion.finish is not Finish.LENGTH or call.schema is None:
        return None
    return read_cut(completion.text, call.schema)


def _refuse_cut(call: Call, completion: Completion) -> None:
    if completion.finish is not Finish.LENGTH:
        return
    if _fills_window(call, completion):
        raise ContextTooLong(
            f"the reply of {call.model} ended before its bound of {call.max_tokens:,} output tokens, because the model's "
            "window was full: use fewer or shorter passages, or serve the model with a larger window",
            provider=parse(call.model).provider,
            model=call.model,
            request_id=completion.request_id,
            usage=completion.usage,
        )
    raise _cut(call, completion)


def _fills_window(call: Call, completion: Completion) -> bool:
    """Return whether a cut reply is shorter than its bound: messages and reply filled the model's window."""
    usage = completion.usage
    return usage is not None and usage.total_output + SLACK < call.max_tokens


def _cut(call: Call, completion: Completion, more: str = "") -> UnusableReply:
    if not more and (endless(completion.text) or loops(completion.text)):
        said = "the reply repeats itself without an end, and was cut: use another model, or reword the question"
        return _unusable(TruncatedReply, call, completion, said)
    reasoning = 0 if completion.usage is None else completion.usage.reasoning
    spent = f", {reasoning} of them for reasoning" if reasoning else ", reasoning included"
    advice = "lower POSOLOGY_EFFORT, or raise" if reasoning else "raise"
    return _unusable(
        TruncatedReply,
        call,
        completion,
        f"truncated at {call.max_tokens} output tokens{spent}{more and '; ' + more}: {advice} max_tokens or "
        "POSOLOGY_MAX_TOKENS",
    )


def _unusable(
    kind: type[UnusableReply], call: Call, completion: Completion, reason: str
) -> UnusableReply:
    return kind(
        f"the reply of {call.model} does not match the schema {call.schema.__name__}: {reason}"
        if call.schema is not None
        else reason,
        provider=parse(call.model).provider,
        model=call.model,
        request_id=completion.request_id,
        usage=completion.usage,
    )
