"""Plan of BriefContext's calls: extract calls are known, the reduce call's input is estimated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from posology.seams import Guess
from posology.types import (
    Call,
    Citation,
    Excerpt,
    Message,
    Partition,
    PlannedCall,
    Role,
    Sentence,
)
from prompts.fence import heading
from prompts.lengths import filler
from prompts.reduce import Sourced, reduce_schema, render_reduce

#: fewest output tokens of a quote, JSON included: 11 of the common tokenizers for a quote of one word
LEAST_QUOTE = 10
#: characters of the shortest quote: three short words
_SHORT = 20


def plan_reduce(call: Call, extract: Call, parts: Sequence[Partition], guess: Guess) -> PlannedCall:
    """Plan the reduce call, whose input is unknown before the findings are there.

    Args:
        call: with one finding of each passage, as :func:`findings_of` gives them.
        extract: one of the calls that extract.
        parts: all partitions.
        guess: predicts token counts.
    """
    one, *others = findings_of(parts)
    # each further finding adds its own tokens, regardless of the text around
    others = others or [one]
    first, whole = (guess.input(_with(call, found)) for found in ([one], [one, *others]))
    block = (whole - first) / len(others)
    bare = max(0.0, first - block)
    findings = guess.findings(extract, call, bare=bare, block=block)
    return PlannedCall(
        call=call,
        input=bare + findings * len(parts),
        output=guess.output(call),
        share=guess.found(call.model),
        worst_cases=tuple(
            _with(call, found)
            for found in (
                _most_findings(call, parts, extract.max_tokens, guess),
                _longest_statements(parts, extract.max_tokens),
            )
        ),
    )


def findings_of(parts: Iterable[Partition]) -> list[Sourced]:
    """Return one finding of each passage: its sentence of median length."""
    return [
        _median(excerpt, part.first_rank + place)
        for part in parts
        for place, excerpt in enumerate(part.excerpts)
    ]


def _with(call: Call, found: Sequence[Sourced]) -> Call:
    return replace(
        call,
        messages=render_reduce(call.query, found).messages,
        schema=reduce_schema(call.query.choices, len(found)),
    )


def _most_findings(
    call: Call, parts: Sequence[Partition], tokens: int, guess: Guess
) -> list[Sourced]:
    """Return as many findings as extractions have room for, each with its partition's longest heading."""

    def length(excerpt: Excerpt) -> int:
        text = "\n".join(heading(excerpt.passage))
        return guess.bound(replace(call, messages=(Message(role=Role.USER, content=text),)))

    found = []
    for part in parts:
        place = max(range(len(part.excerpts)), key=lambda i: length(part.excerpts[i]))
        one = _sourced(part, place, part.excerpts[place].passage.text[:_SHORT])
        found += [one] * max(1, tokens // LEAST_QUOTE)
    return found


def _longest_statements(parts: Sequence[Partition], tokens: int) -> list[Sourced]:
    """Return one finding a partition that quotes all of its passages; its statement is repeated for each."""
    return [
        _sourced(part, place, filler(tokens))
        for part in parts
        for place in range(len(part.excerpts))
    ]


def _sourced(part: Partition, place: int, statement: str) -> Sourced:
    passage = part.excerpts[place].passage
    end = min(_SHORT, len(passage.text))
    quote = Citation(passage_id=passage.id, start=0, end=end, quote=passage.text[:end])
    return Sourced(
        statement=statement, passage=passage, rank=part.first_rank + place, citations=(quote,)
    )


def _median(excerpt: Excerpt, rank: int) -> Sourced:
    text = excerpt.passage.text
    by_length = sorted(excerpt.sentences, key=lambda s: s.end - s.start)
    median = by_length[len(by_length) // 2] if by_length else Sentence(start=0, end=len(text))
    quote = median.of(text)
    cited = Citation(passage_id=excerpt.passage.id, start=median.start, end=median.end, quote=quote)
    return Sourced(statement=quote, passage=excerpt.passage, rank=rank, citations=(cited,))
