"""Prices of tokens by kind and length of the input, and the arithmetic over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from types import MappingProxyType
from typing import Literal

from posology.types import Usage

MILLION = Decimal(10**6)
#: prompt caches that a call may write to; ``short``: those of a provider's shortest lifetime
Writes = Literal["none", "short", "any"]
#: number of lifetimes, shortest first
_WRITES: Mapping[Writes, int] = MappingProxyType({"none": 0, "short": 1, "any": 2})
#: precision that holds any price times any count of tokens exactly
_EXACT = Context(prec=60)


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """Prices for inputs above a length, in dollars per million tokens."""

    #: tokens; the prices apply to inputs longer than this. -1: to all
    above: int
    input: Decimal
    cache_read: Decimal
    cache_write_5m: Decimal
    cache_write_1h: Decimal
    #: ``None``: unknown, e.g. for an embedding model
    output: Decimal | None
    #: ``None``: unknown
    reasoning: Decimal | None

    def dearest_input(self, *, writes: Writes) -> Decimal:
        """Return the maximum price of an input token, read from a cache or not.

        Args:
            writes: to which caches it may be written, too.
        """
        written = (self.cache_write_5m, self.cache_write_1h)[: _WRITES[writes]]
        return max(self.input, self.cache_read, *written)

    @property
    def dearest_output(self) -> Decimal | None:
        """Maximum price of an output token, visible or not; ``None``: unknown."""
        if self.output is None or self.reasoning is None:
            return None
        return max(self.output, self.reasoning)

    def buckets(self, usage: Usage) -> Iterable[tuple[int, Decimal | None]]:
        """Return tokens by kind, each with its price per million."""
        yield usage.input, self.input
        yield usage.cache_read, self.cache_read
        yield usage.cache_write_5m, self.cache_write_5m
        yield usage.cache_write_1h, self.cache_write_1h
        yield usage.output, self.output
        yield usage.reasoning, self.reasoning


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    """A model's prices. The length of a call's whole input selects the prices of all its tokens."""

    #: by ascending length; the first applies to all inputs
    steps: tuple[Step, ...]
    #: dollars per call, for any length
    request: Decimal = Decimal(0)

    def cost(self, usage: Usage) -> Decimal | None:
        """Return the cost in dollars; ``None``: a used kind of tokens has no price."""
        step = next(s for s in reversed(self.steps) if usage.total_input > s.above)
        total = Decimal(0)
        for tokens, price in step.buckets(usage):
            if not tokens:
                continue
            if price is None:
                return None
            total = _EXACT.add(total, _EXACT.multiply(price, tokens))
        return _EXACT.add(self.request, _EXACT.divide(total, MILLION))

    def worst(
        self, input_tokens: int, output_tokens: int, *, writes: Writes = "any"
    ) -> Decimal | None:
        """Return the maximum cost of a usage within the two bounds; ``None``: unknown.

        Within a step, cost grows with every token, so its most is at the longest input that the step
        holds for, all of it in the dearest bucket. A longer input may be cheaper, so every step that
        can be reached is looked at.

        Args:
            input_tokens: bound of the input.
            output_tokens: bound of the output.
            writes: to which prompt caches input may be written.
        """
        most = Decimal(0)
        for step, following in zip(self.steps, (*self.steps[1:], None), strict=True):
            if step.above >= input_tokens:
                break
            longest = input_tokens if following is None else min(input_tokens, following.above)
            said = step.dearest_output if output_tokens else Decimal(0)
            if said is None:
                return None
            read = _EXACT.multiply(step.dearest_input(writes=writes), longest)
            most = max(most, _EXACT.add(read, _EXACT.multiply(said, output_tokens)))
        return _EXACT.add(self.request, _EXACT.divide(most, MILLION))

    def scaled(self, factor: Decimal) -> Rates:
        """Return all prices times a factor."""

        def times(price: Decimal) -> Decimal:
            return _EXACT.multiply(price, factor)

        def maybe(price: Decimal | None) -> Decimal | None:
            return None if price is None else times(price)

        return Rates(
            steps=tuple(
                Step(
                    above=s.above,
                    input=times(s.input),
                    cache_read=times(s.cache_read),
                    cache_write_5m=times(s.cache_write_5m),
                    cache_write_1h=times(s.cache_write_1h),
                    output=maybe(s.output),
                    reasoning=maybe(s.reasoning),
                )
                for s in self.steps
            ),
            request=times(self.request),
        )
