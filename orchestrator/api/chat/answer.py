"""Answers as chat messages: Markdown with links to the sources, and where the links stand."""

from __future__ import annotations

import re
from collections.abc import Iterator

from orchestrator.rendering.markdown import inert, remarks, sources
from orchestrator.rendering.sources import cited, link, mark, outcome, verdict
from orchestrator.rendering.words import safe
from posology.published.answers import AskOutput, Source, Status
from posology.published.chat import (
    ChatAnnotation,
    ChatCompletionDetails,
    ChatMessage,
    ChatOutcome,
    ChatPromptDetails,
    ChatUsage,
    UrlCitation,
)
from posology.published.jobs import JobOutput
from posology.text.quoting.references import references
from posology.types import Usage

#: an escaped character, code, or a link to an article: brackets of any other text are escaped, so that only our own links have
#: these
_LINK = re.compile(r"\\.|`[^`]*`|\[(?:\[\d+\]|(?:[^\[\]\\]|\\.)*)\]\(<([^<>\s]+)>\)", re.DOTALL)


def message(out: AskOutput, *, completed: str | None = None) -> ChatMessage:
    """Return an answer or a refusal as a message.

    Each citation links to its article and has an annotation, which counts code points of the message. Text of models and of
    the literature is escaped: no markup of theirs has an effect.

    Args:
        out: the answer or refusal.
        completed: the question that was asked where earlier ones complete it, which is shown; ``None``: it is as it was sent.
    """
    shown = [] if completed is None else [f"*Asked as: {_plain(completed)}*", ""]
    text = "\n".join([*shown, *_lines(out)]).strip()
    titles = {address: one.title for one in _sources(out) if (address := link(one))}
    annotations = tuple(
        ChatAnnotation(
            url_citation=UrlCitation(
                start_index=found.start(),
                end_index=found.end(),
                url=found[1],
                title=" ".join(safe(titles[found[1]]).split()),
            )
        )
        for found in _LINK.finditer(text)
        if found[1]
    )
    return ChatMessage(content=text, annotations=annotations)


def usage(used: Usage) -> ChatUsage:
    """Return tokens in OpenAI's form."""
    return ChatUsage(
        prompt_tokens=used.total_input,
        completion_tokens=used.total_output,
        total_tokens=used.total_input + used.total_output,
        prompt_tokens_details=ChatPromptDetails(cached_tokens=used.cache_read),
        completion_tokens_details=ChatCompletionDetails(reasoning_tokens=used.reasoning),
    )


def outcome_of(
    job: JobOutput, out: AskOutput, ignored: tuple[str, ...], completed: str | None
) -> ChatOutcome:
    """Return outcome, cost and versions, which OpenAI's form lacks.

    Args:
        job: the job.
        out: its result.
        ignored: fields of the request without effect.
        completed: the question that was asked where earlier ones complete it.
    """
    return ChatOutcome(
        job=job.id,
        status=out.status,
        choice=out.choice,
        model=out.model,
        strategy=out.strategy,
        index=out.index,
        cost_usd=job.spending.cost_usd,
        charged_usd=job.spending.charged_usd,
        usage_complete=job.spending.usage_complete,
        ignored=ignored,
        question=completed,
    )


def _sources(out: AskOutput) -> Iterator[Source]:
    yield from (one.source for one in cited(out))
    for conflict in out.conflicts:
        yield from (one.passage for one in (*conflict.supporting, *conflict.opposing))


def _lines(out: AskOutput) -> Iterator[str]:
    if out.status is Status.UNSUPPORTED or not out.judged:
        yield f"**{inert(outcome(out))}**"
        yield ""
    if said := verdict(out):
        yield f"**{_plain(said)}**"
        yield ""
    yield _body(out)
    if out.evidence:
        yield ""
        yield "**Sources**"
        yield from sources(out)
    yield from remarks(out)


def _body(out: AskOutput) -> str:
    if out.answer is None:
        return _plain(out.refusal or "")
    if not out.judged and out.evidence:
        # it only repeats the quotes, which follow
        return _plain(out.answer.partition("“")[0].strip())
    numbered = {one.source.id: one.number for one in cited(out)}
    linked = {one.number: link(one.source) for one in cited(out)}
    text, end = "", 0
    for one in out.support.sentences if out.support else ():
        part, named = _referring(out.answer[end : one.end], numbered, linked)
        more = {numbered[out.evidence[place].passage.id] for place in one.evidence} - named
        text += part + "".join(f" {_reference(n, linked)}" for n in sorted(more))
        text += inert(mark(one))
        end = one.end
    return (text + _referring(out.answer[end:], numbered, linked)[0]).strip()


def _referring(
    text: str, numbered: dict[str, int], linked: dict[int, str | None]
) -> tuple[str, set[int]]:
    """Return a piece of an answer with its references as links, and their numbers."""
    shown, named, end = "", set[int](), 0
    for found in references(text, numbered):
        numbers = [numbered[item] for item in found.items if item in numbered]
        shown += _plain(text[end : found.start])
        shown += " ".join(_reference(number, linked) for number in numbers)
        named.update(numbers)
        end = found.end
    return shown + _plain(text[end:]), named


def _reference(number: int, linked: dict[int, str | None]) -> str:
    address = linked[number]
    return f"[[{number}]](<{address}>)" if address else rf"\[{number}\]"


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is, with its lines."""
    lines = re.split(r"[ \t]*\n[ \t]*", safe(text).expandtabs(1))
    return "\n".join(map(inert, lines))
