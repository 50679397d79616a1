"""Measures of a reconciliation."""

from __future__ import annotations

from enum import StrEnum

from posology.types import Usage


class Measure(StrEnum):
    """One figure that both sides keep. Tokens are whole numbers, ``COST`` is dollars."""

    REQUESTS = "requests"
    #: all tokens that went in, cached or not
    INPUT = "input"
    #: of these, neither read from nor written to a cache
    UNCACHED = "input_uncached"
    CACHE_READ = "cache_read"
    #: written to a cache, however long it lives
    CACHE_WRITE = "cache_write"
    #: of these, to one that lives five minutes
    CACHE_WRITE_5M = "cache_write_5m"
    #: of these, to one that lives an hour
    CACHE_WRITE_1H = "cache_write_1h"
    #: all tokens that came out, seen or not
    OUTPUT = "output"
    COST = "cost"


class Kind(StrEnum):
    """Kind of an export."""

    #: requests and tokens
    USAGE = "usage"
    #: dollars
    COST = "cost"
    #: one row a request
    REQUESTS = "requests"


#: those that tokens go in by, so that an attempt's bound on input bounds each
INWARD = (
    Measure.INPUT,
    Measure.UNCACHED,
    Measure.CACHE_READ,
    Measure.CACHE_WRITE,
    Measure.CACHE_WRITE_5M,
    Measure.CACHE_WRITE_1H,
)
#: what an export of usage always says
LEAST = (Measure.INPUT, Measure.OUTPUT)


def tokens(usage: Usage) -> dict[Measure, int]:
    """Tokens of one of our attempts, under the names of both sides."""
    return {
        Measure.INPUT: usage.total_input,
        Measure.UNCACHED: usage.input,
        Measure.CACHE_READ: usage.cache_read,
        Measure.CACHE_WRITE: usage.cache_write_5m + usage.cache_write_1h,
        Measure.CACHE_WRITE_5M: usage.cache_write_5m,
        Measure.CACHE_WRITE_1H: usage.cache_write_1h,
        Measure.OUTPUT: usage.total_output,
    }
