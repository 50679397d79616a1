"""Cost and savings of summaries from your own machine, per question (TCRA-LLM, section 5.3)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from orchestrator.question.estimates.savings import machine_dollars


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionCost:
    """Cost of one question in dollars, by item."""

    #: embedding the question for retrieval
    retrieval: Decimal
    #: the call's input
    input: Decimal
    #: the call's output
    output: Decimal
    #: the summarizing machine; 0 without summaries
    machine: Decimal = Decimal(0)

    @property
    def total(self) -> Decimal:
        """Return the sum."""
        return self.retrieval + self.input + self.output + self.machine

    def saving(self, whole: QuestionCost) -> Decimal:
        """Return the relative savings compared with another cost; negative if this one is higher."""
        return 1 - self.total / whole.total


@dataclass(frozen=True, kw_only=True, slots=True)
class CostModel:
    """Prices of one question, with and without summaries (section 5.3).

    As in the paper, the one-time cost of the training set and the fine-tuning is not included.
    """

    #: of the summarizing machine
    dollars_per_hour: Decimal
    #: seconds per summary
    seconds: float
    #: fraction of time the machine is busy
    utilisation: float
    #: summaries per question; 0 if all exist already
    summaries: float = 1.0
    #: dollars per token of the question's embedding
    retrieval_price: Decimal
    #: dollars per input token
    input_price: Decimal
    #: dollars per output token
    output_price: Decimal

    def whole(self, *, question: int, tokens_in: int, tokens_out: int) -> QuestionCost:
        """Return the cost without summaries.

        Args:
            question: tokens to embed.
            tokens_in: input tokens, context included.
            tokens_out: output tokens.
        """
        return QuestionCost(
            retrieval=question * self.retrieval_price,
            input=tokens_in * self.input_price,
            output=tokens_out * self.output_price,
        )

    def compressed(
        self, *, question: int, tokens_in: int, tokens_out: int, context: int, left: float
    ) -> QuestionCost:
        """Return the cost with the context summarised to a share of its tokens.

        Args:
            question: tokens to embed.
            tokens_in: input tokens without summaries.
            tokens_out: output tokens.
            context: tokens of ``tokens_in`` that are context.
            left: compression ratio of the summaries, 0 to 1.

        Raises:
            ValueError: the context has more tokens than the input, or ``left`` is out of range.
        """
        if not 0 <= context <= tokens_in:
            raise ValueError(f"context must be from 0 to tokens_in={tokens_in} (got {context})")
        if not 0 <= left <= 1:
            raise ValueError(f"left must be from 0 to 1 (got {left})")
        tokens = Decimal(tokens_in - context) + context * Decimal(str(left))
        one = machine_dollars(self.seconds, self.dollars_per_hour, self.utilisation)
        return QuestionCost(
            retrieval=question * self.retrieval_price,
            input=tokens * self.input_price,
            output=tokens_out * self.output_price,
            machine=one * Decimal(str(self.summaries)),
        )
