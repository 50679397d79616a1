"""The length-checking loop (TCRA-LLM, figure 4): ask for a share, and ask again until the length is right."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from posology.query import make_query
from posology.seams import Complete
from posology.text.refusals import is_refusal
from posology.text.sentences import split
from posology.types import Call, Completion, Excerpt, Finish, Passage, Stage
from prompts.shorten import Length, render_again, render_shorten
from prompts.template import Rendered
from strategies.compression.checked import check

#: names the calls in the account
STRATEGY = "summarization"
#: by how much of the passage's words a summary may be off
TOLERANCE = 0.1
#: replies that are asked for, at most
ROUNDS = 4
#: Output tokens for each word that is taken at most, and besides: medical prose has 1.3 to 1.6 a word.
TOKENS_A_WORD, TOKENS_BESIDES = 3, 32
_QUERY = make_query("What does the passage say, in fewer words?")


class Ending(StrEnum):
    """How the work on one passage ended."""

    #: a summary of the right length that says nothing which the passage does not
    FITS = "fits"
    #: no reply did, of as many as are asked for
    NEVER_FIT = "never_fit"
    #: the model, or its provider's safety system, would not
    DECLINED = "declined"


@dataclass(frozen=True, kw_only=True, slots=True)
class Shortened:
    """What became of a passage."""

    passage: Passage
    ending: Ending
    #: replies that were read
    rounds: int
    #: the last reply; of the right length where it fits
    summary: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Shortener:
    """Shortens one passage, spending only through the ``complete`` that it is given."""

    #: ``provider:name``
    model: str
    #: of the words that are left
    share: float
    tolerance: float = TOLERANCE
    rounds: int = ROUNDS
    #: bound on output tokens of one call; ``None``: by the length that is asked for
    max_tokens: int | None = None

    async def __call__(self, passage: Passage, complete: Complete) -> Shortened:
        """Ask until a reply fits, or there were as many as are asked for.

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
        raise AssertionError("at least one reply is asked for")

    def first(self, passage: Passage) -> Call:
        """The call that asks for the first time."""
        return self._call(passage, render_shorten(_excerpt(passage), self.length(passage)))

    def again(
        self, passage: Passage, before: Call, reply: str, *, added: tuple[str, ...] = ()
    ) -> Call:
        """The call after a reply that does not fit, with the conversation so far."""
        return self._call(
            passage, render_again(before.messages, reply, self.length(passage), added=added)
        )

    def length(self, passage: Passage) -> Length:
        """What is asked for."""
        return Length(words=len(passage.text.split()), share=self.share, tolerance=self.tolerance)

    def _call(self, passage: Passage, rendered: Rendered) -> Call:
        most = TOKENS_A_WORD * self.length(passage).most + TOKENS_BESIDES
        return Call(
            stage=Stage.COMPRESS,
            model=self.model,
            query=_QUERY,
            excerpts=(_excerpt(passage),),
            messages=rendered.messages,
            prompt=rendered.prompt,
            max_tokens=most if self.max_tokens is None else self.max_tokens,
            strategy=STRATEGY,
        )

    def _judge(
        self, passage: Passage, reply: str, completion: Completion
    ) -> tuple[Ending | None, tuple[str, ...]]:
        """Whether a reply ends the work; where its length is right and it does not, what it adds."""
        if completion.finish is Finish.FILTERED:
            return Ending.DECLINED, ()
        length, words = self.length(passage), len(reply.split())
        if words < length.least:
            # a refusal is short; what is long enough is taken for a summary of a negative finding
            return (Ending.DECLINED if reply and is_refusal(reply) else None), ()
        if words > length.most or completion.finish is Finish.LENGTH:
            return None, ()
        added = check(reply, passage).added
        return (None, added) if added else (Ending.FITS, ())


def _excerpt(passage: Passage) -> Excerpt:
    return Excerpt(passage=passage, sentences=split(passage.text))
