"""The offline model: an extractive reader that quotes and does not judge.

It needs no key and no network. Figures and limits: ``docs/concepts/offline-reader.md``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import anyio
import anyio.to_thread
from pydantic import ValidationError

from posology.errors import RequestRejected, TruncatedReply
from posology.llm.offline.answering import AnswerScorer, LikenessScorer
from posology.llm.offline.choice import Scores, choose, fill
from posology.llm.offline.contrast import contrast
from posology.llm.offline.replies import REPLIES, Found
from posology.llm.offline.scores import Scored
from posology.llm.offline.tabulating import tabulated
from posology.llm.offline.verdict import SHOWN, Verdict, verdict
from posology.seams import SupportJudge, TokenCounter, TokenEncoder
from posology.text.languages import foreign
from posology.types import Call, Completion, Finish, Stage, Usage

NAME = "offline:extractive"
#: version, incremented when the same call may get another reply
VERSION = "3"


class ExtractiveReader:
    """A :class:`~posology.seams.Send` that quotes the sentences that answer the question best.

    It reads ``Call.query`` and ``Call.excerpts``, never the messages, so that nothing in a passage
    can instruct it. A verdict (``choice``) is always ``None``: no language model gives one. A question in a language
    that it does not read is refused. It answers, extracts, and reduces what was extracted. Passages that it is to shorten for a
    question it shortens to the best sentences, as many as half of ``Call.max_tokens`` has room for; it
    writes nothing anew, so that it has no reply to other ways of shortening. The fields of a table it fills in from the best
    sentence for each (:mod:`posology.llm.offline.tabulating`).

    Args:
        encoder: scores sentences by their likeness to the question, where there is no ``answers``.
        count: of tokens.
        answers: loads what scores sentences by their probability of answering, on first use; ``None``: likeness.
        judge: loads what assigns sentences to the sides of a conflict; ``None``: their wording does.
        seconds: maximum predicted seconds of a call; ``None``: no limit.

    Raises:
        RequestRejected: another stage, a schema that does not take the stage's reply, or too much to read.
        TruncatedReply: no quote fits ``Call.max_tokens``.
    """

    def __init__(
        self,
        encoder: TokenEncoder,
        count: TokenCounter,
        *,
        answers: Callable[[], AnswerScorer] | None = None,
        judge: Callable[[], SupportJudge | None] | None = None,
        seconds: float | None = None,
    ) -> None:
        self._encoder = encoder
        self._count = count
        self._make_answers = answers
        self._make_judge = judge
        self._seconds = seconds
        self._scorer: LikenessScorer | AnswerScorer | None = None
        self._judge: SupportJudge | None = None
        self._limiter = anyio.CapacityLimiter(1)

    @property
    def crossed(self) -> bool:
        """Return whether a cross-encoder scores sentences."""
        return self._make_answers is not None

    async def __call__(self, call: Call, *, attempt_id: str | None = None) -> Completion:  # noqa: ARG002 - nothing is sent
        """Answer by quotes, or refuse."""
        started = time.perf_counter()
        # free text is asked for where words are to be written
        if call.stage not in REPLIES or (call.stage is Stage.COMPRESS and call.schema is None):
            raise RequestRejected(
                f"the offline extractive reader only quotes and has no stage {call.stage.value!r}: use another "
                "provider's model",
                provider="offline",
                model=call.model,
                usage=Usage(),
            )
        self._require(call)
        return await anyio.to_thread.run_sync(self._complete, call, started, limiter=self._limiter)

    def _require(self, call: Call) -> None:
        """Refuse a call that would keep the processor from others for long."""
        shown = sum(span.end - span.start for one in call.excerpts for span in one.sentences)
        # each field of a table is a question of its own
        characters = shown * max(1, len(call.fields))
        needed = characters / (AnswerScorer if self.crossed else LikenessScorer).pace
        if self._seconds is not None and needed > self._seconds:
            raise RequestRejected(
                f"the offline extractive reader would read for about {needed:.0f} s, and at most {self._seconds:g} s are "
                "allowed: ask for fewer passages (k), or use another model",
                provider="offline",
                model=call.model,
                usage=Usage(),
            )

    def _complete(self, call: Call, started: float) -> Completion:
        if self._scorer is None:
            self._judge = None if self._make_judge is None else self._make_judge()
            make = self._make_answers
            self._scorer = LikenessScorer(self._encoder) if make is None else make()
        text, reply = self._reply(call, self._scorer)
        return Completion(
            text=text,
            usage=Usage(input=self._input(call), output=self._count(text)),
            finish=Finish.STOP,
            served_model=f"{NAME}@{VERSION}+{self._scorer.name}",
            parsed=_validated(call, reply),
            latency=time.perf_counter() - started,
        )

    def _reply(
        self, call: Call, scorer: LikenessScorer | AnswerScorer
    ) -> tuple[str, dict[str, Any]]:
        excerpts = [one.readable() for one in call.excerpts]
        if not call.fields:
            return self._fitting(self._find(call, scorer(call.query.text, excerpts)))
        reply = tabulated(call, scorer)
        text = json.dumps(reply, ensure_ascii=False)
        if self._count(text) > call.max_tokens:
            raise self._too_long(call, "row")
        return text, reply

    def _find(self, call: Call, scores: Scores) -> Found:
        reducing = call.stage is Stage.REDUCE
        language = foreign(call.query.text)
        if call.stage is Stage.COMPRESS:
            everything = [*scores.read, *scores.unread]
            chosen = fill(everything, call.excerpts, self._count, call.max_tokens)
        elif language is not None and not reducing:
            chosen = []
        else:
            chosen = choose(scores, judged=reducing)
        return Found(
            call=call,
            scores=scores,
            chosen=chosen,
            contrast=contrast(call, scores, self._judge) if reducing else None,
            verdict=self._verdict(call, chosen),
            language=language,
        )

    def _verdict(self, call: Call, chosen: Sequence[Scored]) -> Verdict | None:
        if not SHOWN or self._judge is None or call.stage not in (Stage.ANSWER, Stage.REDUCE):
            return None
        texts = [one.sentence.of(call.excerpts[one.excerpt].passage.text) for one in chosen]
        return verdict(call.query.text, texts, self._judge)

    def _fitting(self, found: Found) -> tuple[str, dict[str, Any]]:
        """Return the reply with as many of the chosen quotes as ``max_tokens`` allows."""
        call = found.call
        for candidate in _shorter(found):
            reply = REPLIES[call.stage](candidate)
            text = json.dumps(reply, ensure_ascii=False)
            if self._count(text) <= call.max_tokens:
                return text, reply
        raise self._too_long(call, "quote")

    def _too_long(self, call: Call, what: str) -> TruncatedReply:
        return TruncatedReply(
            f"no {what} fits {call.max_tokens} output tokens: raise max_tokens or POSOLOGY_MAX_TOKENS",
            provider="offline",
            model=call.model,
            usage=Usage(input=self._input(call)),
        )

    def _input(self, call: Call) -> int:
        return sum(self._count(message.content) for message in call.messages)


def _shorter(found: Found) -> Iterator[Found]:
    """Yield the finding, then shorter ones: with fewer quotes, and at last without the contrast."""
    for pair in dict.fromkeys((found.contrast, None)):
        for n in range(len(found.chosen), 0, -1):
            yield replace(found, chosen=found.chosen[:n], contrast=pair)
    if not found.chosen:
        yield found


def _validated(call: Call, reply: dict[str, Any]) -> Any:
    if call.schema is None:
        return None
    try:
        return call.schema.model_validate(reply)
    except ValidationError as error:
        raise RequestRejected(
            f"the offline extractive reader cannot fill the schema {call.schema.__name__}: use another "
            "provider's model",
            provider="offline",
            model=call.model,
            usage=Usage(),
        ) from error
