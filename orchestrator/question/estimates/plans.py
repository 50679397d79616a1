"""The calls that a strategy makes, rendered by the strategy itself and sent nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from orchestrator.question.estimates.tokens import Counting
from orchestrator.question.estimates.typical import Label, Typical
from posology.seams import Bound, Compressor, Rewriter, Strategy
from posology.types import (
    Call,
    Citation,
    Excerpt,
    Extract,
    Extraction,
    Finding,
    Message,
    Partition,
    Reduction,
    Role,
    Sentence,
    Task,
)
from prompts.fence import OMISSION, heading
from prompts.reduce import Sourced, render_reduce
from strategies import evidence
from strategies.briefcontext import strategy as briefcontext
from strategies.briefcontext.strategy import BriefContext
from strategies.compressed import NAME, CompressedRag
from strategies.direct import Direct
from strategies.ladder import Ladder
from strategies.single_call import ask

#: Characters that stand for one token of a reply that comes back as input. Of 4,500 replies that
#: ``evals.replies`` puts together, o200k's tokens have 4.2 on average and 6.04 in the longest of them;
#: by words, 2.9 tokens at most are counted for one.
CHARACTERS = 6
#: Fewest output tokens that a quote takes, JSON and all: 11 of the common tokenizers for one of one word.
LEAST_QUOTE = 10
#: stands before what is left of a passage's text, besides a summary
_TEXT = "\ntext: "
#: characters of the shortest quote: three short words
_SHORT = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Planned:
    """A call, what is guessed of it, and what it can be at worst."""

    call: Call
    #: tokens that go in, at best guess
    input: float
    #: tokens that come out, at best guess
    output: float
    #: how likely it is made; 1: always
    share: float = 1.0
    #: what it may be instead, the dearest of which counts; empty: it is as it is
    instead: tuple[Call, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Guessing:
    """What a plan needs to guess by."""

    counting: Counting
    typical: Typical
    bound: Bound


def plan(task: Task, strategy: Strategy, guess: Guessing) -> tuple[Planned, ...]:
    """The calls that a strategy makes for a task; empty where it makes none. Blocking.

    Args:
        task: with what was retrieved.
        strategy: one of ours: it says which calls it makes.
        guess: to guess by.
    """
    match strategy:
        case BriefContext():
            return _briefcontext(task, strategy, guess)
        case Ladder():
            return _ladder(task, strategy, guess)
        case CompressedRag():
            return _compressed(task, strategy, guess)
        case Direct():
            return _called(strategy.call(task), guess)
    raise TypeError(f"nobody knows which calls {type(strategy).__name__} makes")


def begin(task: Task, strategy: Strategy, guess: Guessing) -> tuple[Planned, ...]:
    """The calls without which a strategy cannot answer: of a ladder its first rung, else all."""
    if not isinstance(strategy, Ladder):
        return plan(task, strategy, guess)
    first, *_ = (*strategy.tasks(task), task)
    return plan(first, strategy.inner, guess)


def _ladder(task: Task, ladder: Ladder, guess: Guessing) -> tuple[Planned, ...]:
    """Each rung is made where the one before was refused."""
    return tuple(
        replace(one, share=one.share * guess.typical.reached(task.model, rung))
        for rung, part in enumerate(ladder.tasks(task))
        for one in plan(part, ladder.inner, guess)
    )


def _called(call: Call | None, guess: Guessing) -> tuple[Planned, ...]:
    return () if call is None else (_planned(call, guess),)


def _compressed(task: Task, strategy: CompressedRag, guess: Guessing) -> tuple[Planned, ...]:
    """A rewriter's calls and the one for an answer; nothing that takes a model is run for it."""
    compressor, keep = strategy.compressor, strategy.keep
    if not task.retrieval.passages:
        return ()
    if not isinstance(compressor, Rewriter):
        if compressor.extractive:
            return _called(strategy.call(task), guess)
        return (_written(task, compressor, keep, guess),)
    calls = compressor.calls(task, keep)
    tokens = _tokens(task, guess) * compressor.expected_ratio(keep) / max(1, len(calls))
    answer = _written(task, compressor, keep, guess)
    return (
        *(
            Planned(
                call=call,
                input=guess.counting.expected(call),
                output=guess.typical.output(label(call), before=tokens),
            )
            for call in calls
        ),
        # where it finds nothing that is worth keeping there is nothing to ask about
        replace(answer, share=guess.typical.reduced(task.model)),
    )


def _written(
    task: Task, compressor: Compressor | Rewriter, keep: float | None, guess: Guessing
) -> Planned:
    """The call for an answer over what is not written yet.

    At worst each passage is as long as it is, since compressed RAG shows none that became longer, in characters
    that are counted by their bytes, and with all the marks of omission that there is room for.
    """
    passages = task.retrieval.passages
    bare = ask(
        task, tuple(Excerpt(passage=p.passage, sentences=()) for p in passages), strategy=NAME
    )
    whole = ask(task, evidence.whole(passages), strategy=NAME)
    most = ask(
        task,
        tuple(
            Excerpt(
                passage=p.passage,
                sentences=(),
                summary="7" * (_bytes(p.passage.text) + _bytes(OMISSION) * (len(p.sentences) + 1))
                + _TEXT,
            )
            for p in passages
        ),
        strategy=NAME,
    )
    assert bare is not None
    assert whole is not None
    assert most is not None
    return Planned(
        call=bare,
        input=guess.counting.expected(bare)
        + _tokens(task, guess) * compressor.expected_ratio(keep),
        output=guess.typical.output(label(bare)),
        instead=(whole, most),
    )


def _tokens(task: Task, guess: Guessing) -> float:
    texts = (one.passage.text for one in task.retrieval.passages)
    return guess.counting.text([Message(role=Role.USER, content=t) for t in texts], task.model)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _planned(call: Call, guess: Guessing) -> Planned:
    expected = guess.counting.expected(call)
    return Planned(call=call, input=expected, output=guess.typical.output(label(call)))


def label(call: Call) -> Label:
    """Under which a call stands in the ledger's figures."""
    return Label(stage=str(call.stage), strategy=call.strategy, model=call.model)


def _briefcontext(task: Task, strategy: BriefContext, guess: Guessing) -> tuple[Planned, ...]:
    parts = strategy.partition(task.retrieval.passages)
    if not parts:
        return ()
    extracts = tuple(
        briefcontext.extract_call(
            Extract(query=task.query, partition=part, model=task.model, max_tokens=task.max_tokens)
        )
        for part in parts
    )
    reduce = briefcontext.reduce_call(
        Reduction(
            query=task.query,
            partitions=parts,
            extractions=tuple(_extraction(part) for part in parts),
            model=task.model,
            max_tokens=task.max_tokens,
        )
    )
    assert reduce is not None
    return (
        *(_planned(call, guess) for call in extracts),
        _reduced(reduce, extracts[0], parts, guess),
    )


def _reduced(call: Call, extract: Call, parts: Sequence[Partition], guess: Guessing) -> Planned:
    """The reduce call, whose input nobody knows before the findings are there.

    Args:
        call: with some findings.
        extract: one of the calls that find.
        parts: all that is read.
        guess: to guess by.
    """
    counting, typical = guess.counting, guess.typical
    one, *others = _findings_of(parts)
    # what comes with one more finding is that finding, whatever stands around
    others = others or [one]
    first, all_ = (
        counting.text(render_reduce(call.query, found).messages, call.model)
        for found in ([one], [one, *others])
    )
    block = (all_ - first) / len(others)
    bare = max(0.0, first - block) + counting.around(call)
    findings = typical.findings(label(extract), label(call), bare=bare, block=block)
    return Planned(
        call=call,
        input=bare + findings * len(parts),
        output=typical.output(label(call)),
        share=typical.reduced(call.model),
        instead=tuple(
            replace(call, messages=render_reduce(call.query, found).messages)
            for found in (
                _most_findings(call, parts, extract.max_tokens, guess.bound),
                _longest_statements(parts, extract.max_tokens),
            )
        ),
    )


def _most_findings(
    call: Call, parts: Sequence[Partition], tokens: int, bound: Bound
) -> list[Sourced]:
    """As many findings as extractions can have room for, each of its partition's longest heading."""

    def length(excerpt: Excerpt) -> int:
        text = "\n".join(heading(excerpt.passage))
        return bound(replace(call, messages=(Message(role=Role.USER, content=text),)))

    found = []
    for part in parts:
        place = max(range(len(part.excerpts)), key=lambda i: length(part.excerpts[i]))
        one = _sourced(part, place, part.excerpts[place].passage.text[:_SHORT])
        found += [one] * max(1, tokens // LEAST_QUOTE)
    return found


def _longest_statements(parts: Sequence[Partition], tokens: int) -> list[Sourced]:
    """One finding a partition that quotes all of its passages: its statement is shown with each of them."""
    return [
        _sourced(part, place, filler(tokens))
        for part in parts
        for place in range(len(part.excerpts))
    ]


def filler(tokens: int) -> str:
    """What a reply of so many tokens is at most, for whoever bounds it as input.

    Digits: bounds count them by their bytes, and tokenizers take three at most for one token.
    """
    return "7" * (CHARACTERS * tokens)


def _sourced(part: Partition, place: int, statement: str) -> Sourced:
    passage = part.excerpts[place].passage
    end = min(_SHORT, len(passage.text))
    quote = Citation(passage_id=passage.id, start=0, end=end, quote=passage.text[:end])
    return Sourced(
        statement=statement, passage=passage, rank=part.first_rank + place, citations=(quote,)
    )


def _extraction(part: Partition) -> Extraction:
    """What finds something in every passage."""
    return Extraction(
        partition=part.index,
        findings=tuple(
            Finding(statement=found.statement, citations=found.citations)
            for found in _findings_of([part])
        ),
    )


def _findings_of(parts: Sequence[Partition]) -> list[Sourced]:
    """One finding of each passage, of a sentence of middle length."""
    return [
        _middle(excerpt, part.first_rank + place)
        for part in parts
        for place, excerpt in enumerate(part.excerpts)
    ]


def _middle(excerpt: Excerpt, rank: int) -> Sourced:
    text = excerpt.passage.text
    by_length = sorted(excerpt.sentences, key=lambda s: s.end - s.start)
    middle = by_length[len(by_length) // 2] if by_length else Sentence(start=0, end=len(text))
    quote = middle.of(text)
    cited = Citation(passage_id=excerpt.passage.id, start=middle.start, end=middle.end, quote=quote)
    return Sourced(statement=quote, passage=excerpt.passage, rank=rank, citations=(cited,))
