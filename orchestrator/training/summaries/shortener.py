"""The length-checking loop (TCRA-LLM, figure 4): request a summary of a length, and again until it fits."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from posology.llm.models.effort import effort_of, reasoning_tokens
from posology.query import make_query
from posology.seams import Complete
from posology.text.refusals import is_refusal
from posology.text.sentences import split
from posology.types import Call, Completion, Excerpt, Finish, Passage, Stage
from prompts.shorten import Length, render_again, render_shorten
from prompts.template import Rendered
from strategies.compression.checked import check

#: strategy of the calls, in the account
STRATEGY = "summarization"
#: accepted deviation from the target, as a share of the passage's words
TOLERANCE = 0.1
#: maximum replies for a passage
ROUNDS = 4
#: Output limit in tokens: per word of the longest accepted summary, and a constant. Medical prose has 1.3 to 1.6
#: tokens per word.
TOKENS_A_WORD, TOKENS_BESIDES = 3, 32
_QUERY = make_query("What does the passage say, in fewer words?")


class Ending(StrEnum):
    """Result of shortening a passage."""

    #: a summary of the right length without claims that the passage does not make
    FITS = "fits"
    #: no reply fitted within the maximum number
    NEVER_FIT = "never_fit"
    #: the model or its provider's safety system refused
    DECLINED = "declined"


@dataclass(frozen=True, kw_only=True, slots=True)
class Shortened:
    """A passage with its last reply."""

    passage: Passage
    ending: Ending
    #: number of replies
    rounds: int
    #: last reply
    summary: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Shortener:
    """Shortens a passage. All calls go through the given ``complete``."""

    #: ``provider:name``
    model: str
    #: target share of the words
    share: float
    tolerance: float = TOLERANCE
    rounds: int = ROUNDS
    #: limit on output tokens of one call; ``None``: derived from the target length
    max_tokens: int | None = None
    #: as :func:`~posology.llm.models.effort.parse_effort` takes it; ``None``: the model's lowest level
    effort: str | None = None

    async def __call__(self, passage: Passage, complete: Complete) -> Shortened:
        """Request summaries until one fits or the maximum number of replies is reached.

        Raises:
            ProviderError: a call failed.
        """
        call = self.first(passage)
        for number in range(1, self.rounds + 1):
            completion = await complete(call)
            reply = completion.text.strip()
            ending, added = self._judge(passage, reply, completion)
            if ending is None and number == self.rounds:
                ending = Ending.NEVER_FIT
            if ending is not None:
                return Shortened(passage=passage, ending=ending, rounds=number, summary=reply)
            call = self.again(passage, call, reply, added=added)
        raise AssertionError("rounds must be >= 1")

    def first(self, passage: Passage) -> Call:
        """Return the first call."""
        return self._call(passage, render_shorten(_excerpt(passage), self.length(passage)))

    def again(
        self, passage: Passage, before: Call, reply: str, *, added: tuple[str, ...] = ()
    ) -> Call:
        """Return the call after a reply that does not fit, with the conversation so far."""
        return self._call(
            passage, render_again(before.messages, reply, self.length(passage), added=added)
        )

    def length(self, passage: Passage) -> Length:
        """Return the target length."""
        return Length(words=len(passage.text.split()), share=self.share, tolerance=self.tolerance)

    def _call(self, passage: Passage, rendered: Rendered) -> Call:
        effort = effort_of(self.model, Stage.COMPRESS, self.effort)
        most = TOKENS_A_WORD * self.length(passage).most + TOKENS_BESIDES
        most += reasoning_tokens(self.model, effort)
        return Call(
            stage=Stage.COMPRESS,
            model=self.model,
            query=_QUERY,
            excerpts=(_excerpt(passage),),
            messages=rendered.messages,
            prompt=rendered.prompt,
            effort=effort,
            max_tokens=most if self.max_tokens is None else self.max_tokens,
            strategy=STRATEGY,
        )

    def _judge(
        self, passage: Passage, reply: str, completion: Completion
    ) -> tuple[Ending | None, tuple[str, ...]]:
        """Return the ending, ``None`` to continue; and claims that only a reply of the right length adds."""
        if completion.finish is Finish.FILTERED:
            return Ending.DECLINED, ()
        length, words = self.length(passage), len(reply.split())
        if words < length.least:
            # a refusal is short; a long enough one is a summary of a negative finding
            return (Ending.DECLINED if reply and is_refusal(reply) else None), ()
        if words > length.most or completion.finish is Finish.LENGTH:
            return None, ()
        added = check(reply, passage).added
        return (None, added) if added else (Ending.FITS, ())


def _excerpt(passage: Passage) -> Excerpt:
    return Excerpt(passage=passage, sentences=split(passage.text))
