"""The embedded default model: an extractive reader that quotes, and judges nothing.

It needs no key and no network. Figures and limits: ``docs/decisions/0006-offline-reader.md``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
from pydantic import ValidationError

from posology.errors import RequestRejected, TruncatedReply
from posology.llm.offline_scoring import Scored, SentenceScorer
from posology.seams import TokenCounter, TokenEncoder
from posology.types import Call, Completion, Finish, Passage, Stage, Usage

NAME = "offline:extractive"
#: Counted up when the same call may get another reply.
VERSION = "1"

#: A question whose best sentence scores less is refused. Chosen by `python -m evals.offline_reader`
#: for the packaged MiniLM: the highest that keeps 90 % of the answerable questions of each dev set.
THRESHOLD = 0.60
#: Sentences that score this much less than the best are not quoted: a choice, not fitted.
MARGIN = 0.03
#: The same for the best sentence of another passage. It is wider, because what is nearly as close
#: and stands elsewhere may contradict the best, and a reader that cannot judge must not hide it.
MARGIN_ELSEWHERE = 0.10
#: Quotes at most.
MAX_QUOTES = 3

NOTICE = "Quoted by an extractive reader; no language model judged this."


class ExtractiveReader:
    """A :class:`~posology.seams.Complete` that quotes the sentences most like the question.

    It reads ``Call.query`` and ``Call.excerpts``, never the messages, so that nothing in a passage
    can instruct it. A verdict (``choice``) is always ``None``: likeness to a question says nothing
    of yes or no.

    Raises:
        RequestRejected: a stage other than ``ANSWER``, or a schema that takes no quotes.
        TruncatedReply: not even one quote fits ``Call.max_tokens``.
    """

    def __init__(self, encoder: TokenEncoder, count: TokenCounter) -> None:
        self._encoder = encoder
        self._count = count
        self._scorer: SentenceScorer | None = None
        self._limiter = anyio.CapacityLimiter(1)

    async def __call__(self, call: Call) -> Completion:
        """Answer by quotes, or refuse."""
        started = time.perf_counter()
        if call.stage not in _REPLIES:
            raise RequestRejected(
                f"the offline extractive reader has no stage {call.stage.value!r}, it only quotes "
                "for 'answer': choose an openai: or anthropic: model",
                provider="offline",
                model=call.model,
                usage=Usage(),
            )
        return await anyio.to_thread.run_sync(self._complete, call, started, limiter=self._limiter)

    def _complete(self, call: Call, started: float) -> Completion:
        if self._scorer is None:
            self._scorer = SentenceScorer(self._encoder)
        scored = self._scorer(call.query.text, call.excerpts)
        chosen = choose(scored)
        text, reply = self._fitting(call, scored, chosen)
        return Completion(
            text=text,
            usage=Usage(input=self._input(call), output=self._count(text)),
            finish=Finish.STOP,
            served_model=f"{NAME}@{VERSION}",
            parsed=_validated(call, reply),
            latency=time.perf_counter() - started,
        )

    def _fitting(
        self, call: Call, scored: list[Scored], chosen: list[Scored]
    ) -> tuple[str, dict[str, Any]]:
        """The reply with as many of the chosen quotes as ``max_tokens`` allows."""
        for n in range(len(chosen), -1, -1):
            if chosen and not n:
                break
            reply = _REPLIES[call.stage](call, scored, chosen[:n])
            text = json.dumps(reply, ensure_ascii=False)
            if self._count(text) <= call.max_tokens:
                return text, reply
        raise TruncatedReply(
            f"no quote fits {call.max_tokens} output tokens: raise max_tokens",
            provider="offline",
            model=call.model,
            usage=Usage(input=self._input(call)),
        )

    def _input(self, call: Call) -> int:
        return sum(self._count(message.content) for message in call.messages)


def choose(scored: list[Scored]) -> list[Scored]:
    """The sentences to quote of all, best first; none when the best is below the threshold."""
    if not scored or scored[0].score < THRESHOLD:
        return []
    best, chosen, quoted = scored[0].score, [scored[0]], {scored[0].excerpt}
    for one in scored[1:]:
        again = one.excerpt in quoted
        # the threshold tells whether there is an answer; once there is, what stands against it is
        # to be seen, too
        least = max(THRESHOLD, best - MARGIN) if again else best - MARGIN_ELSEWHERE
        if len(chosen) < MAX_QUOTES and one.score >= least:
            chosen.append(one)
            quoted.add(one.excerpt)
    return chosen


def _answer(call: Call, scored: list[Scored], chosen: list[Scored]) -> dict[str, Any]:
    quotes = [
        {
            "passage": f"P{s.excerpt + 1}",
            "quote": s.sentence.of(call.excerpts[s.excerpt].passage.text),
        }
        for s in chosen
    ]
    if quotes:
        said = " ".join(
            f"“{q['quote']}” [{_source(q['passage'], call.excerpts[s.excerpt].passage)}]"
            for q, s in zip(quotes, chosen, strict=True)
        )
    elif scored:
        said = (
            "No sentence of the passages is close enough to the question: the closest scores "
            f"{scored[0].score:.2f} of the {THRESHOLD:.2f} needed."
        )
    else:
        said = "There is no text to look for an answer in."
    return {
        "answerable": bool(quotes),
        "answer": f"{said} ({NOTICE})",
        "choice": None,
        "quotes": quotes,
    }


def _source(label: str, passage: Passage) -> str:
    """What a reader of contradicting quotes needs first: how old each is, and of what kind."""
    year = [] if passage.year is None else [str(passage.year)]
    return ", ".join([label, *year, *passage.publication_types])


#: What each stage's reply is made of: the call, all sentences scored, those to quote.
_REPLIES: dict[Stage, Callable[[Call, list[Scored], list[Scored]], dict[str, Any]]] = {
    Stage.ANSWER: _answer,
}


def _validated(call: Call, reply: dict[str, Any]) -> Any:
    if call.schema is None:
        return None
    try:
        return call.schema.model_validate(reply)
    except ValidationError as error:
        raise RequestRejected(
            f"the offline extractive reader cannot fill the schema {call.schema.__name__}: "
            "choose an openai: or anthropic: model",
            provider="offline",
            model=call.model,
            usage=Usage(),
        ) from error
