"""Strategies: how a question is answered.

:data:`STRATEGIES` is the one registry: a new strategy is a file here, its prompt, and an entry there. Importing this
module loads no strategy: an entry imports its code when it builds the strategy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from posology.errors import InputError

if TYPE_CHECKING:
    from posology.seams import Compressor, Rewriter, Strategy
    from posology.types import Dose
    from strategies.single_call import OneCall

#: returns the compressor of a name, or the configured one for ``None``. Blocking: it may load a model
Choose = Callable[[str | None], "Compressor | Rewriter"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """Parts that a strategy is built from, besides its dose."""

    #: returns compressors; ``None``: the strategy's default
    choose: Choose | None = None
    #: passages a partition; ``None``: the strategy's default
    partition_size: int | None = None
    #: predicted seconds of a compression, above which it is refused; ``None``: no limit
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A registered strategy: how to build it, and what it can do."""

    #: builds the strategy of a dose
    build: Callable[[Dose, Parts], Strategy]
    #: whether a compressor selects what is shown; only then may a question name a compressor or a share to keep
    takes_compressor: bool = False
    #: share of the passages' text that its calls always show, 0 to 1; ``None``: it varies
    share: float | None = None


def _direct(dose: Dose, _: Parts) -> Strategy:
    from strategies.direct import Direct

    return _in_steps(Direct(), dose)


def _compressed(dose: Dose, parts: Parts) -> Strategy:
    from strategies.compressed import CompressedRag

    compressor = None if parts.choose is None else parts.choose(dose.compressor)
    return _in_steps(
        CompressedRag(compressor=compressor, keep=dose.keep, seconds=parts.seconds), dose
    )


def _briefcontext(_: Dose, parts: Parts) -> Strategy:
    from strategies.briefcontext.strategy import DEFAULT_SIZE, BriefContext

    size = parts.partition_size
    return BriefContext(size=DEFAULT_SIZE if size is None else size)


def _in_steps(inner: OneCall, dose: Dose) -> Strategy:
    if not dose.rungs:
        return inner
    from strategies.ladder import Ladder

    return Ladder(inner, rungs=dose.rungs, overlapping=dose.overlapping)


#: name → strategy, in the order in which they are listed
STRATEGIES: dict[str, Entry] = {
    "direct": Entry(build=_direct, share=1.0),
    "compressed": Entry(build=_compressed, takes_compressor=True),
    "briefcontext": Entry(build=_briefcontext),
}


def takes_compressor(strategy: object) -> bool:
    """Return whether a strategy reads what a compressor selects; false for all that is no registered name."""
    entry = STRATEGIES.get(strategy) if isinstance(strategy, str) else None
    return entry is not None and entry.takes_compressor


def make(
    dose: Dose,
    *,
    choose: Choose | None = None,
    partition_size: int | None = None,
    seconds: float | None = None,
) -> Strategy:
    """Build the strategy of a dose. Blocking: a compressor may load a model.

    Args:
        dose: names a strategy of :data:`STRATEGIES`; its number of passages is applied to the task instead.
        choose: returns compressors; ``None``: the strategy's default.
        partition_size: passages a partition; ``None``: the strategy's default.
        seconds: predicted seconds of a compression, above which it is refused; ``None``: no limit.

    Raises:
        InputError: no such strategy.
        InvalidQuery: no such compressor.
        ConfigurationError: the compressor's model or another part is missing.
        ValueError: the dose has steps or a share that the strategy cannot use.
    """
    if dose.strategy not in STRATEGIES:
        known = ", ".join(STRATEGIES)
        raise InputError(f"unknown strategy {dose.strategy!r}: choose one of {known}")
    return STRATEGIES[dose.strategy].build(
        dose, Parts(choose=choose, partition_size=partition_size, seconds=seconds)
    )
