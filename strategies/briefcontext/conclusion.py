"""Conclusion from the reply to the reduce prompt: an answer with its conflicts, or a refusal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from posology.text.refusals import declines
from posology.text.repeats import echoes, once, remark
from posology.types import (
    Answer,
    Citation,
    Completion,
    Conflict,
    Finish,
    Passage,
    Query,
    Refusal,
    Resolution,
    Statement,
)
from prompts.fence import position
from prompts.reduce import (
    LETTER,
    CitedConclusion,
    CitedReduce,
    CitedResolution,
    Claim,
    Conclusion,
    ReduceReply,
    ResolutionReply,
    Sourced,
)
from strategies.briefcontext.answers import resolved, told
from strategies.briefcontext.conflicts import judge, oppose, union
from strategies.briefcontext.findings import NAME, Reading, quoted
from strategies.citing import state
from strategies.single_call import ECHO
from strategies.verdict import verdict_of

#: how the note on partitions that give several answers begins
DIFFERENT = "Parts of the passages answer differently"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Judged:
    """Conflicts of a reply, with remarks for a reader."""

    conflicts: tuple[Conflict, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rested:
    """The text of an answer, and what it rests on."""

    text: str
    citations: tuple[Citation, ...]
    passages: tuple[Passage, ...]
    #: number of sentences that it names and that do not bear it out
    dropped: int = 0
    notes: tuple[str, ...] = ()
    statements: tuple[Statement, ...] = ()


def conclude(query: Query, completion: Completion, read: Reading) -> Answer | Refusal:
    """Conclude from the reply to a call over ``read.findings``, which it names by their labels.

    A reply names findings or their sentences and never quotes, so nothing can be cited that no partition gave. An
    answer that names none is unsupported.
    """
    reply = completion.parsed
    if completion.finish is Finish.FILTERED or not isinstance(reply, Conclusion | CitedConclusion):
        declined = "The provider's safety system declined to answer."
        return _refuse(declined, read, (completion.text,) if completion.text else ())
    answer = reply.answer.strip()
    if not reply.answerable or not answer:
        reason = answer or "The model gave no answer and no reason."
        return _refuse(reason, read, (*_discarded(reply), *_differing(read)))
    if echoes(answer, query.text):
        return _refuse(ECHO, read, _discarded(reply))
    rested = _rested(reply, query.text, answer, read)
    verdict = verdict_of(query, reply.choice, answer)
    if declines(answer, quoted=bool(rested.citations)):
        return _refuse(answer, read, _discarded(reply))
    judged = _judge(query, reply, read)
    return Answer(
        text=rested.text,
        choice=verdict.choice,
        worded=verdict.worded,
        citations=rested.citations,
        dropped_quotes=read.dropped_quotes + rested.dropped,
        strategy=NAME,
        notes=(
            *judged.notes,
            *_losing(judged.conflicts, rested.citations),
            *_retracted(rested.passages),
            *_of_concern(rested.passages),
            *verdict.notes,
            *_unknown(reply, read),
            *rested.notes,
            *read.notes,
        ),
        conflicts=judged.conflicts,
        coverage=read.coverage,
        statements=rested.statements,
        faulty_quotes=read.faulty_quotes,
    )


def _rested(
    reply: Conclusion | CitedConclusion, question: str, answer: str, read: Reading
) -> _Rested:
    if isinstance(reply, Conclusion):
        named = _named(reply.evidence, read)
        short = once(answer)
        return _Rested(
            text=short,
            notes=remark(int(short != answer)),
            citations=union(named),
            passages=tuple(finding.passage for finding in named),
        )
    stated = state(reply.statements, quoted(read.findings), question)
    cited = {citation.passage_id for citation in stated.verified.citations}
    passages = (finding.passage for finding in read.findings)
    return _Rested(
        text=stated.text,
        citations=stated.verified.citations,
        passages=tuple(passage for passage in passages if passage.id in cited),
        dropped=len(stated.verified.dropped),
        notes=stated.notes,
        statements=stated.statements,
    )


def _judge(query: Query, reply: Conclusion | CitedConclusion, read: Reading) -> _Judged:
    """Return the conflicts: of the answers of partitions, or else of the claims that the reply groups."""
    if not isinstance(reply, ResolutionReply | CitedResolution):
        return _judge_claims(_claims(reply), read)
    said = (reply.choice if query.choices else reply.short.strip()) or None
    conflict = read.ruled or resolved(read.groups, said)
    if conflict is None:
        return _Judged(conflicts=(), notes=())
    return _Judged(
        conflicts=(conflict,),
        notes=(f"{DIFFERENT}. {conflict.how}",),
    )


def _judge_claims(claims: Iterable[Claim], read: Reading) -> _Judged:
    conflicts, notes = [], []
    for claim in claims:
        text = " ".join(claim.claim.split()) or "(an empty claim)"
        opposed = oppose(_named(claim.supporting, read), _named(claim.opposing, read))
        if opposed.torn:
            notes.append(
                f"Cited on both sides of {_titled(text)}, so counted on neither: "
                f"{', '.join(opposed.torn)}."
            )
        conflict = judge(text, opposed)
        if conflict is None:
            continue
        conflicts.append(conflict)
        notes.append(f"Sources contradict each other on {_titled(text)}. {conflict.how}")
        if claim.resolution != conflict.resolution:
            notes.append(_differs(claim, conflict))
    return _Judged(conflicts=tuple(conflicts), notes=tuple(notes))


def _differs(claim: Claim, conflict: Conflict) -> str:
    match claim.resolution:
        case "none":
            stated = "the model named no side"
        case "unresolved":
            stated = "the model left it unresolved, and so may its answer"
        case side:
            stated = f"the model resolved it for the {side} side, and its answer may follow that"
    return f"On {_titled(conflict.claim)} {stated}."


def _titled(claim: str) -> str:
    """Quote a claim within a sentence."""
    return f"“{claim.rstrip('.')}”"


def _losing(conflicts: Iterable[Conflict], citations: tuple[Citation, ...]) -> tuple[str, ...]:
    """Return notes on conflicts of which the answer cites only the weaker side."""
    cited = {c.passage_id for c in citations}
    notes = []
    for conflict in conflicts:
        if conflict.resolution is Resolution.UNRESOLVED:
            continue
        sides = (conflict.supporting, conflict.opposing)
        won, lost = sides if conflict.resolution is Resolution.SUPPORTING else sides[::-1]
        if cited & {s.passage_id for s in lost} and not cited & {s.passage_id for s in won}:
            notes.append(
                f"On {_titled(conflict.claim)} the answer cites only the side that did not prevail."
            )
    return tuple(notes)


def _retracted(rests_on: Iterable[Passage]) -> tuple[str, ...]:
    ids = sorted({passage.id for passage in rests_on if passage.retracted})
    return (f"The answer also rests on retracted sources: {', '.join(ids)}.",) if ids else ()


def _of_concern(rests_on: Iterable[Passage]) -> tuple[str, ...]:
    ids = sorted({passage.id for passage in rests_on if passage.concern and not passage.retracted})
    if not ids:
        return ()
    return (
        f"An expression of concern was published about sources of the answer: {', '.join(ids)}.",
    )


def _differing(read: Reading) -> tuple[str, ...]:
    if len(read.groups) < 2:
        return ()
    return (f"{DIFFERENT}: {told(read.groups)}.",)


def _claims(reply: Conclusion | CitedConclusion) -> list[Claim]:
    return reply.claims if isinstance(reply, ReduceReply | CitedReduce) else []


def _unknown(reply: Conclusion | CitedConclusion, read: Reading) -> tuple[str, ...]:
    given = [
        *(reply.evidence if isinstance(reply, Conclusion) else ()),
        *(label for c in _claims(reply) for label in (*c.supporting, *c.opposing)),
    ]
    unknown = sum(_finding(label, read) is None for label in given)
    return (f"{unknown} labels of unknown findings were ignored.",) if unknown else ()


def _named(labels: Iterable[str], read: Reading) -> tuple[Sourced, ...]:
    """Return the findings of labels, each once, in the order of the labels."""
    found = dict.fromkeys(place for label in labels if (place := _finding(label, read)) is not None)
    return tuple(read.findings[place] for place in found)


def _finding(label: str, read: Reading) -> int | None:
    place = position(label, LETTER)
    return place if place is not None and place < len(read.findings) else None


def _discarded(reply: Conclusion | CitedConclusion) -> tuple[str, ...]:
    claims = _claims(reply)
    if isinstance(reply, Conclusion):
        named, what = len(reply.evidence), "findings"
    else:
        named, what = sum(len(one.sentences) for one in reply.statements), "sentences"
    if not named and not claims:
        return ()
    return (f"The model refused, so {named} {what} and {len(claims)} claims were ignored.",)


def _refuse(reason: str, read: Reading, notes: tuple[str, ...]) -> Refusal:
    return Refusal(
        reason=reason, strategy=NAME, notes=(*notes, *read.notes), coverage=read.coverage
    )
