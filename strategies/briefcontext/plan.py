"""Plan of BriefContext's calls: extract calls are known, the reduce call's input is estimated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from posology.seams import Guess
from posology.types import (
    Call,
    Citation,
    Excerpt,
    Partition,
    PlannedCall,
    Sentence,
    Task,
)
from prompts.labels import MOST
from prompts.lengths import FINDING_QUOTES, FINDING_SENTENCES, most_findings
from prompts.reduce import Sourced, reduce_schema, render_reduce
from strategies.briefcontext.findings import most_tokens

#: A word of one token, and of as many bytes as findings may have for one token: text of it is at least as long as findings
#: by every bound.
_WORD = " before"
#: answer of a partition as it usually is, or any other of a few words
SHORT = "an answer in five words"


def plan_reduce(
    call: Call,
    extract: Call,
    parts: Sequence[Partition],
    guess: Guess,
    task: Task,
) -> PlannedCall:
    """Plan the reduce call, whose input is unknown before the findings are there.

    Args:
        call: with one finding of each passage, as :func:`findings_of` gives them.
        extract: one of the calls that extract.
        parts: all partitions.
        guess: predicts token counts.
        task: the question.
    """
    found = findings_of(parts)
    if task.partitions != "extract":
        found = [replace(one, answer=SHORT) for one in found]
    one, *others = found
    # each further finding adds its own tokens, regardless of the text around
    others = others or [one]
    first, whole = (guess.input(_with(call, found, task)) for found in ([one], [one, *others]))
    block = (whole - first) / len(others)
    bare = max(0.0, first - block)
    findings = guess.findings(extract, call, bare=bare, block=block)
    return PlannedCall(
        call=call,
        input=bare + findings * len(parts),
        output=guess.output(call),
        share=guess.found(call.model),
        worst_cases=(_longest(call, parts, task),),
    )


def findings_of(parts: Iterable[Partition]) -> list[Sourced]:
    """Return one finding of each passage: its sentence of median length."""
    return [
        _median(excerpt, part.first_rank + place)
        for part in parts
        for place, excerpt in enumerate(part.excerpts)
    ]


def _with(call: Call, found: Sequence[Sourced], task: Task) -> Call:
    return replace(
        call,
        messages=render_reduce(
            call.query, found, quotes=call.quotes, mode=task.partitions, own=task.prompts
        ).messages,
        schema=reduce_schema(call.query.choices, len(found), call.quotes, task.partitions),
    )


def _longest(call: Call, parts: Sequence[Partition], task: Task) -> Call:
    """Return the call with as much of findings as it may get, see :func:`most_tokens`."""
    bare = _with(call, (), task)
    text = _WORD * sum(most_tokens(part, call.quotes, task.partitions) for part in parts)
    each = FINDING_QUOTES if call.quotes == "copied" else FINDING_SENTENCES
    labels = sum(each * most_findings(len(part.excerpts)) for part in parts)
    system, asked = bare.messages
    return replace(
        bare,
        messages=(system, replace(asked, content=asked.content + text)),
        schema=reduce_schema(call.query.choices, min(labels, MOST), call.quotes, task.partitions),
    )


def _median(excerpt: Excerpt, rank: int) -> Sourced:
    text = excerpt.passage.text
    by_length = sorted(excerpt.sentences, key=lambda s: s.end - s.start)
    median = by_length[len(by_length) // 2] if by_length else Sentence(start=0, end=len(text))
    quote = median.of(text)
    cited = Citation(passage_id=excerpt.passage.id, start=median.start, end=median.end, quote=quote)
    return Sourced(statement=quote, passage=excerpt.passage, rank=rank, citations=(cited,))
