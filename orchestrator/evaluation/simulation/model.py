"""A simulated model: it knows the gold passages, and fails to take them in as often as published models did.

It is a measuring instrument for experiments, and no model: it reads nothing. Its replies need gold labels, so that it
cannot answer a user's question, and no provider has it. Figures of it are figures of a simulation, and say so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import anyio.lowlevel

from orchestrator.evaluation.simulation.profiles import Profile
from posology.errors import RequestRejected
from posology.seams import TokenCounter
from posology.text.numbering import name, numbered
from posology.types import (
    Answer,
    Call,
    Completion,
    Excerpt,
    Finish,
    Query,
    Refusal,
    Sentence,
    Stage,
    Usage,
)

#: the gold of a question: by the id of a passage, the spans that answer
Gold = Mapping[str, Sequence[Sentence]]
#: of a question: the verdict or short answer that a passage gives, by its id
Answers = Mapping[str, str]
#: words of the short answer that is read out of a passage that gives none
_FEW = 4
#: how every simulated reply begins, and one from a key passage that was taken in and misread
SIMULATED, MISREAD = "Simulated", "Simulated, misread"


def is_right(outcome: Answer | Refusal, gold: Gold) -> bool:
    """Return whether a simulated model's answer cites the gold and was not misread."""
    if not isinstance(outcome, Answer) or outcome.text.startswith(MISREAD):
        return False
    return any(
        cited.start < span.end and span.start < cited.end
        for cited in outcome.citations
        for span in gold.get(cited.passage_id, ())
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """A shown sentence."""

    excerpt: int
    sentence: int
    #: whether a wrong answer is read out of it
    misread: bool = False


class SimulatedModel:
    """A :class:`~posology.seams.Send` that answers from the gold as often as its profile takes it in.

    What happens to a question is drawn once from the seed and the question: a key passage is taken in wherever the
    profile's probability exceeds that draw. So the same question and context get the same reply, profiles and
    policies are compared on the same draws, and asking again in the same way changes nothing.

    Args:
        profile: how it reads.
        gold: returns the gold of a question; empty: no passage answers it.
        count: of tokens.
        seed: of the draws.
        partial: whether a passage that is shown in part counts as that part of the context's length; else as whole.
        answers: returns what passages answer to a question, for verdicts and for partitions that answer. A passage with an
            answer that is not gold contradicts the gold: it is taken in as the gold is, and where both are, the profile's
            rate of resolving decides. ``None``: no reply has a verdict.

    Raises:
        RequestRejected: a stage other than answer, extract and reduce.
    """

    def __init__(
        self,
        profile: Profile,
        gold: Callable[[Query], Gold],
        count: TokenCounter,
        *,
        seed: int = 0,
        partial: bool = True,
        answers: Callable[[Query], Answers] | None = None,
    ) -> None:
        self.profile = profile
        self._gold = gold
        self._count = count
        self._seed = seed
        self._partial = partial
        self._answers = answers

    async def __call__(self, call: Call, *, attempt_id: str | None = None) -> Completion:  # noqa: ARG002 - nothing is sent
        """Reply to one call."""
        await anyio.lowlevel.checkpoint()
        served = f"simulated:{self.profile.name}"
        if call.stage not in (Stage.ANSWER, Stage.EXTRACT, Stage.REDUCE):
            raise RequestRejected(
                f"a simulated model has no stage {call.stage.value!r}",
                provider="simulated",
                model=served,
                usage=Usage(),
            )
        shown = self._extract(call) if call.stage is Stage.EXTRACT else self._answer(call)
        reply = _REPLIES[call.stage](call, shown)
        reply |= self._short(call, shown, reply)
        text = json.dumps(reply, ensure_ascii=False)
        return Completion(
            text=text,
            usage=Usage(
                input=sum(self._count(message.content) for message in call.messages),
                output=self._count(text),
            ),
            finish=Finish.STOP,
            served_model=served,
            parsed=None if call.schema is None else call.schema.model_validate(reply),
        )

    async def aclose(self) -> None:
        """Hold nothing, so close nothing."""

    def _answer(self, call: Call) -> _Place | None:
        """Return the sentence that is answered from; ``None``: a refusal."""
        profile, key = self.profile, call.query
        gold, others = _divided(call, self._gold(key))
        reducing = call.stage is Stage.REDUCE
        taken = gold if reducing else self._taken(call, gold)
        rivals = self._rivals(call, others)
        if taken:
            if self._draw(key, "shy") < profile.shy:
                return None
            if against := others if reducing else rivals:
                resolved = self._draw(key, "reads") < profile.resolves
                return taken[0] if resolved else self._one(call, against)
            return replace(taken[0], misread=self._draw(key, "reads") >= profile.reads)
        if rivals:
            return self._one(call, rivals)
        if not others or self._draw(key, "refuses") < profile.refuses(len(call.excerpts)):
            return None
        return self._one(call, others)

    def _extract(self, call: Call) -> _Place | None:
        """Return the sentence that is reported of a partition; ``None``: nothing."""
        gold, others = _divided(call, self._gold(call.query))
        taken, rivals = self._taken(call, gold), self._rivals(call, others)
        if taken and rivals:
            resolved = self._draw(call.query, "reads", *_ids(call)) < self.profile.resolves
            return taken[0] if resolved else self._one(call, rivals)
        if taken or rivals:
            return taken[0] if taken else self._one(call, rivals)
        if not others or self._draw(call.query, "misled", *_ids(call)) >= self.profile.misled:
            return None
        return self._one(call, others)

    def _taken(self, call: Call, gold: Sequence[_Place]) -> list[_Place]:
        """Return the gold that is taken in: passages whose place and length suffice."""
        sizes = [_size(excerpt) if self._partial else 1.0 for excerpt in call.excerpts]
        draw = self._draw(call.query, "takes in")
        return [
            one
            for one in gold
            if draw
            < self.profile.takes_in(sum(sizes[: one.excerpt]), sum(sizes[one.excerpt + 1 :]))
        ]

    def _rivals(self, call: Call, others: Sequence[_Place]) -> list[_Place]:
        """Return the passages that contradict the gold and are taken in; all of them in a reduction."""
        if self._answers is None:
            return []
        answers = self._answers(call.query)
        found = [one for one in others if call.excerpts[one.excerpt].passage.id in answers]
        return found if call.stage is Stage.REDUCE else self._taken(call, found)

    def _short(self, call: Call, place: _Place | None, reply: Mapping[str, Any]) -> dict[str, Any]:
        """Return the verdict and the short answer, as far as the call's form has them."""
        fields = {} if call.schema is None else call.schema.model_fields
        answering = "short" if call.stage is Stage.REDUCE else "answer"
        wanted = answering in fields and answering not in reply
        if self._answers is None and not wanted:
            return {}
        said = "" if place is None else self._said(call, place)
        more: dict[str, Any] = {answering: said} if wanted else {}
        if "choice" in fields:
            more["choice"] = said if said in call.query.choices else None
        return more

    def _said(self, call: Call, place: _Place) -> str:
        """Return the verdict or the few words that are read out of a passage.

        One that gives none, or is misread, says anything but what the gold says.
        """
        answers = self._answers(call.query) if self._answers else {}
        passage = call.excerpts[place.excerpt].passage.id
        if passage in answers and not place.misread:
            return answers[passage]
        right = {answers[id_] for id_ in self._gold(call.query) if id_ in answers}
        if others := [one for one in call.query.choices if one not in right]:
            return others[int(self._draw(call.query, "says", passage) * len(others))]
        return " ".join([MISREAD, *_words(call, place).split()[:_FEW]])

    def _one(self, call: Call, others: Sequence[_Place]) -> _Place:
        return others[int(self._draw(call.query, "other", *_ids(call)) * len(others))]

    def _draw(self, query: Query, *what: str) -> float:
        """Return a number from 0 to 1 that depends on the seed, the question and the purpose alone."""
        text = "\0".join((str(self._seed), query.text, *what))
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        return int.from_bytes(digest) / 2**64


def _ids(call: Call) -> list[str]:
    return [excerpt.passage.id for excerpt in call.excerpts]


def _size(excerpt: Excerpt) -> float:
    """Return the share of a passage that is shown, 0 to 1."""
    whole = len(excerpt.passage.text)
    return min(1.0, sum(s.end - s.start for s in excerpt.sentences) / whole) if whole else 0.0


def _divided(call: Call, gold: Gold) -> tuple[list[_Place], list[_Place]]:
    """Return the shown sentences that answer, and the first sentence of every excerpt that holds none."""
    answers, others = [], []
    for i, excerpt in enumerate(call.excerpts):
        spans = gold.get(excerpt.passage.id, ())
        found = [
            _Place(excerpt=i, sentence=j)
            for j, shown in enumerate(numbered(excerpt))
            if any(s.start < g.end and g.start < s.end for s in shown for g in spans)
        ]
        answers += found
        if not found and excerpt.sentences:
            others.append(_Place(excerpt=i, sentence=0))
    return answers, others


def _words(call: Call, place: _Place) -> str:
    excerpt = call.excerpts[place.excerpt]
    spans = numbered(excerpt)[place.sentence]
    return excerpt.passage.text[spans[0].start : spans[-1].end]


def _said(call: Call, place: _Place | None) -> str:
    if place is None:
        return f"{SIMULATED}: no passage answers the question."
    return f"{MISREAD if place.misread else SIMULATED}: {_words(call, place)}"


def _evidence(call: Call, place: _Place) -> dict[str, Any]:
    if call.quotes == "sentences":
        return {"sentences": [name(place.excerpt, place.sentence)]}
    return {"quotes": [{"passage": f"P{place.excerpt + 1}", "quote": _words(call, place)}]}


def _answered(call: Call, place: _Place | None) -> dict[str, Any]:
    if call.quotes == "sentences":
        names = [] if place is None else _evidence(call, place)["sentences"]
        said = [{"text": _said(call, place), "sentences": names}]
        return {"answerable": place is not None, "statements": said, "choice": None}
    quotes = [] if place is None else _evidence(call, place)["quotes"]
    return {
        "answerable": place is not None,
        "answer": _said(call, place),
        "choice": None,
        "quotes": quotes,
    }


def _extracted(call: Call, place: _Place | None) -> dict[str, Any]:
    findings = (
        [] if place is None else [{"statement": _said(call, place), **_evidence(call, place)}]
    )
    return {"found": bool(findings), "findings": findings}


def _reduced(call: Call, place: _Place | None) -> dict[str, Any]:
    reply = _answered(call, place)
    if call.schema is None or "claims" in call.schema.model_fields:
        reply["claims"] = []
    if call.quotes == "copied":
        del reply["quotes"]
        reply["evidence"] = [] if place is None else [f"F{place.excerpt + 1}"]
    return reply


_REPLIES: Mapping[Stage, Callable[[Call, _Place | None], dict[str, Any]]] = {
    Stage.ANSWER: _answered,
    Stage.EXTRACT: _extracted,
    Stage.REDUCE: _reduced,
}
