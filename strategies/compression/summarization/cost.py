"""What summarising on a machine of one's own costs a question, and what it saves (TCRA-LLM, section 5.3)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

_HOUR = Decimal(3600)


def machine_dollars(seconds: float, dollars_per_hour: Decimal, utilisation: float = 1.0) -> Decimal:
    """What the seconds of a machine cost that is paid for by the hour, busy or not.

    Args:
        seconds: that the work takes, 0 or more.
        dollars_per_hour: of the machine, 0 or more.
        utilisation: share of the hours that it works at all, over 0 to 1: the idle rest is paid for, too.

    Raises:
        ValueError: one of them is out of its range.
    """
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"seconds are 0 or more, not {seconds}")
    if not (dollars_per_hour.is_finite() and dollars_per_hour >= 0):
        raise ValueError(f"dollars an hour are 0 or more, not {dollars_per_hour}")
    if not 0 < utilisation <= 1:
        raise ValueError(f"a utilisation is over 0, and at most 1, not {utilisation}")
    return Decimal(str(seconds)) * dollars_per_hour / _HOUR / Decimal(str(utilisation))


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionCost:
    """Dollars that one question costs, by what they are paid for."""

    #: embedding the question for retrieval
    retrieval: Decimal
    #: the call's input
    input: Decimal
    #: the call's output
    output: Decimal
    #: the machine that summarises; 0 where nothing is summarised
    machine: Decimal = Decimal(0)

    @property
    def total(self) -> Decimal:
        """All of it."""
        return self.retrieval + self.input + self.output + self.machine

    def saving(self, whole: QuestionCost) -> Decimal:
        """The share of another question's cost that this one saves; negative where it costs more."""
        return 1 - self.total / whole.total


@dataclass(frozen=True, kw_only=True, slots=True)
class CostModel:
    """Prices of one question, with and without summaries (section 5.3).

    Not counted, here as in the paper: what the training set and the fine-tuning cost, once.
    """

    #: of the machine that summarises
    dollars_per_hour: Decimal
    #: that one summary takes
    seconds: float
    #: share of its hours that the machine works
    utilisation: float
    #: summaries that one question needs; 0 where all of them were made before
    summaries: float = 1.0
    #: dollars a token of the question's embedding
    retrieval_price: Decimal
    #: dollars a token
    input_price: Decimal
    output_price: Decimal

    def whole(self, *, question: int, tokens_in: int, tokens_out: int) -> QuestionCost:
        """Without summaries.

        Args:
            question: tokens that are embedded.
            tokens_in: tokens that go into the call, the context among them.
            tokens_out: tokens that come out.
        """
        return QuestionCost(
            retrieval=question * self.retrieval_price,
            input=tokens_in * self.input_price,
            output=tokens_out * self.output_price,
        )

    def compressed(
        self, *, question: int, tokens_in: int, tokens_out: int, context: int, left: float
    ) -> QuestionCost:
        """With the context summarised to a share of its tokens.

        Args:
            question: tokens that are embedded.
            tokens_in: tokens that would go into the call without summaries.
            tokens_out: tokens that come out.
            context: tokens of ``tokens_in`` that are context.
            left: share of them that the summaries have, 0 to 1.

        Raises:
            ValueError: the context has more tokens than the input, or ``left`` is no share.
        """
        if not 0 <= context <= tokens_in:
            raise ValueError(f"{context} tokens of context are none of {tokens_in} of input")
        if not 0 <= left <= 1:
            raise ValueError(f"a share is 0 to 1, not {left}")
        tokens = Decimal(tokens_in - context) + context * Decimal(str(left))
        one = machine_dollars(self.seconds, self.dollars_per_hour, self.utilisation)
        return QuestionCost(
            retrieval=question * self.retrieval_price,
            input=tokens * self.input_price,
            output=tokens_out * self.output_price,
            machine=one * Decimal(str(self.summaries)),
        )
