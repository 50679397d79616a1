"""The figures that both sides count."""

from __future__ import annotations

from enum import StrEnum

from posology.types import Usage


class Measure(StrEnum):
    """One figure of both sides. Tokens are whole numbers, ``COST`` is dollars."""

    REQUESTS = "requests"
    #: all input tokens, cached or not
    INPUT = "input"
    #: of these, neither read from nor written to a cache
    UNCACHED = "input_uncached"
    CACHE_READ = "cache_read"
    #: written to a cache of any lifetime
    CACHE_WRITE = "cache_write"
    #: of these, to one that lives five minutes
    CACHE_WRITE_5M = "cache_write_5m"
    #: of these, to one that lives an hour
    CACHE_WRITE_1H = "cache_write_1h"
    #: all output tokens, visible or not
    OUTPUT = "output"
    COST = "cost"


class Kind(StrEnum):
    """The content of an export."""

    #: requests and tokens
    USAGE = "usage"
    #: dollars
    COST = "cost"
    #: one row for each request
    REQUESTS = "requests"


#: kinds of input; an attempt's bound on input bounds each
INWARD = (
    Measure.INPUT,
    Measure.UNCACHED,
    Measure.CACHE_READ,
    Measure.CACHE_WRITE,
    Measure.CACHE_WRITE_5M,
    Measure.CACHE_WRITE_1H,
)
#: figures of every export of usage
LEAST = (Measure.INPUT, Measure.OUTPUT)


def tokens(usage: Usage) -> dict[Measure, int]:
    """Return the tokens of one of our attempts, by the measures of both sides."""
    return {
        Measure.INPUT: usage.total_input,
        Measure.UNCACHED: usage.input,
        Measure.CACHE_READ: usage.cache_read,
        Measure.CACHE_WRITE: usage.cache_write_5m + usage.cache_write_1h,
        Measure.CACHE_WRITE_5M: usage.cache_write_5m,
        Measure.CACHE_WRITE_1H: usage.cache_write_1h,
        Measure.OUTPUT: usage.total_output,
    }
