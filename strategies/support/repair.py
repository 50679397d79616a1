"""One more reply for an answer with sentences that its quotes do not support.

The calls of a strategy are recorded. The reply behind its answer is sent back to the model once, with the problem of each such
sentence. Then the strategy runs again on its recorded replies, with the second reply in place of that one: so it is verified
as the first was, whichever strategy runs, and nothing but the repair is paid for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from posology.llm.memo import call_key
from posology.seams import Complete, Guess
from posology.types import (
    Answer,
    Backing,
    Call,
    Completion,
    Difference,
    PlannedCall,
    QuoteForm,
    Rule,
    SentenceSupport,
    Stage,
)
from prompts.answer import render_repair
from prompts.lengths import filler

#: stages whose replies are answers
ANSWERING: Final = frozenset({Stage.ANSWER, Stage.REDUCE})
#: most sentences whose problems are named
NAMED: Final = 8
#: Share of the answers that are sent back: nearly half of the responses of GPT-4o with web search are not fully supported
#: by their sources (SourceCheckup, abstract).
SHARE: Final = 0.5
#: problem of a sentence that fails a rule
_PROBLEMS: Mapping[Rule, str] = MappingProxyType(
    {
        Rule.SUBJECT: "it shares no words with its evidence",
        Rule.NUMBER: "a number of it, with its comparison and unit, is not in its evidence",
        Rule.COLUMN: "a number of it stands under another heading in its evidence, a row of a table",
        Rule.DRUG: "a drug of it is not in its evidence",
        Rule.NAME: "a name of it is not in its evidence",
        Rule.NEGATION: "it negates what its evidence states, or the reverse",
        Rule.DIRECTION: "it states another direction of the effect than its evidence",
        Rule.POPULATION: "it is about other people or animals than its evidence",
        Rule.INVENTED: "it names an author, a journal, a trial or a drug that no passage names",
        Rule.OPPOSITE: "it says the opposite of its evidence",
        Rule.UNSAID: "its evidence does not say it",
    }
)


class Unrecorded(Exception):
    """A strategy that runs again needs a reply that it did not need before."""


class Recording:
    """A :class:`~posology.seams.Complete` that keeps the replies and the errors of its calls.

    Args:
        inner: sends calls.
    """

    def __init__(self, inner: Complete) -> None:
        self._inner = inner
        self._found: dict[str, Completion | Exception] = {}
        #: calls whose replies are answers or refusals, in order
        self._answering: list[tuple[Call, Completion]] = []

    async def __call__(self, call: Call) -> Completion:
        """Send one call."""
        try:
            found = self._found[call_key(call)] = await self._inner(call)
        except Exception as error:
            self._found[call_key(call)] = error
            raise
        if call.stage in ANSWERING:
            self._answering.append((call, found))
        return found

    def behind(self, answer: Answer) -> tuple[Call, Completion] | None:
        """Return the call that an answer was concluded from, and its reply; ``None``: there was none.

        A ladder may return the answer of an earlier step than its last.
        """
        if len(answer.rungs) == len(self._answering):
            for found, rung in zip(reversed(self._answering), reversed(answer.rungs), strict=True):
                if not rung.refused:
                    return found
        return self._answering[-1] if self._answering else None

    def replaced(self, behind: Call, reply: Completion) -> Complete:
        """Return what replays the recorded replies, with another reply to one call.

        It raises :class:`Unrecorded` for a call that was not made.
        """
        found = self._found | {call_key(behind): reply}

        async def replay(call: Call) -> Completion:
            one = found.get(call_key(call))
            if one is None:
                raise Unrecorded
            if isinstance(one, Exception):
                raise one
            return one

        return replay


def repair_call(call: Call, reply: str, problems: Sequence[str]) -> Call:
    """Return the call that sends a reply back.

    Args:
        call: the call that it is the reply to.
        reply: its text.
        problems: from :func:`problems_of`.
    """
    rendered = render_repair(call.messages, reply, problems)
    return replace(call, stage=Stage.REPAIR, messages=rendered.messages, prompt=rendered.prompt)


def estimated(call: Call, reply: str) -> bool:
    """Return whether a reply is no longer than estimates expect at worst."""
    return len(reply.encode("utf-8", "surrogatepass")) <= len(filler(call.max_tokens))


def problems_of(answer: Answer, quotes: QuoteForm) -> tuple[str, ...]:
    """Return the problem of each sentence of a checked answer that is not supported, for the model.

    Sentences are named by their place, so that no words of a reply stand outside a fence.
    """
    assert answer.support is not None
    wrong = [(i, one) for i, one in enumerate(answer.support.sentences, 1) if not one.stands]
    return tuple(_problem(i, one, quotes) for i, one in wrong[:NAMED])


def _problem(place: int, one: SentenceSupport, quotes: QuoteForm) -> str:
    name = "Statement" if quotes == "sentences" else "Sentence"
    if not one.citations:
        said = "none of the evidence named for it stands"
    elif one.backing is Backing.CONTRADICTED:
        said = "its evidence says the contrary"
    else:
        said = "its evidence does not say this"
    return "; ".join([f"{name} {place}: {said}", *(_PROBLEMS[rule] for rule in one.failed)]) + "."


def plan_repair(planned: Iterable[PlannedCall], guess: Guess) -> PlannedCall | None:
    """Plan the repair of a question's answer; ``None``: no call is planned whose reply is an answer.

    At worst the longest of the replies is sent back, with every problem that a sentence can have.

    Args:
        planned: the question's other calls.
        guess: predicts token counts.
    """
    answering = [one for one in planned if one.call.stage in ANSWERING]
    if not answering:
        return None
    first = answering[0]
    call = _longest(first.call)
    complaint = call.messages[-1].content
    return PlannedCall(
        call=call,
        input=first.input + first.output + guess.tokens([complaint], call.model) / NAMED,
        output=guess.output(call, default=first.output),
        share=SHARE * max(one.share for one in answering),
        worst_cases=tuple(
            _longest(case) for one in answering for case in one.worst_cases or (one.call,)
        ),
    )


def _longest(call: Call) -> Call:
    worst = SentenceSupport(
        start=0,
        end=0,
        backing=Backing.UNSUPPORTED,
        probability=None,
        differences=tuple(Difference(rule=rule) for rule in Rule),
    )
    problems = [_problem(NAMED, worst, call.quotes)] * NAMED
    return repair_call(call, filler(call.max_tokens), problems)
