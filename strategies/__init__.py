"""Strategies: how a question is answered. A new one is a file here and a line in ``STRATEGIES``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from posology.seams import Compressor, Rewriter, Strategy
from posology.types import Dose
from strategies import compressed, direct
from strategies.briefcontext import strategy
from strategies.ladder import Ladder, OneCall


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """What a dose does not say of how it is given."""

    #: of compressed RAG; ``None``: its own
    compressor: Compressor | Rewriter | None = None
    #: passages a partition of BriefContext; ``None``: its own
    partition_size: int | None = None


def _direct(dose: Dose, given: Given) -> Strategy:  # noqa: ARG001 - as all of them are made
    return _climbing(direct.Direct(), dose)


def _compressed(dose: Dose, given: Given) -> Strategy:
    return _climbing(compressed.CompressedRag(compressor=given.compressor, keep=dose.keep), dose)


def _briefcontext(dose: Dose, given: Given) -> Strategy:  # noqa: ARG001 - it reads all, by one size
    size = given.partition_size
    return strategy.BriefContext(size=strategy.DEFAULT_SIZE if size is None else size)


def _climbing(inner: OneCall, dose: Dose) -> Strategy:
    return Ladder(inner, rungs=dose.rungs, overlapping=dose.overlapping) if dose.rungs else inner


#: name → how to make it
STRATEGIES: Mapping[str, Callable[[Dose, Given], Strategy]] = MappingProxyType(
    {
        direct.NAME: _direct,
        compressed.NAME: _compressed,
        strategy.NAME: _briefcontext,
    }
)


def make(
    dose: Dose,
    *,
    compressor: Compressor | Rewriter | None = None,
    partition_size: int | None = None,
) -> Strategy:
    """The strategy that gives a dose.

    Args:
        dose: of a strategy in :data:`STRATEGIES`; how many passages it reads is the task's business.
        compressor: of compressed RAG, whatever the dose's is called; ``None``: its own.
        partition_size: passages a partition of BriefContext; ``None``: its own.

    Raises:
        KeyError: there is no such strategy.
        ValueError: the dose cannot be given.
    """
    given = Given(compressor=compressor, partition_size=partition_size)
    return STRATEGIES[dose.strategy](dose, given)
