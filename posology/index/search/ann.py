"""Vector index of a table: its kind by number of rows, its search parameters and its recall.

A small table has no index. A medium one is searched exactly, with its vectors decoded in memory. A large one is searched
by IVF-PQ (Jégou, Douze and Schmid, *Product quantization for nearest neighbor search*, TPAMI 2011): a question is
compared with the codes of the passages in the nearest partitions, then with the true vectors of the best of these. The
numbers of partitions and vectors are chosen by recall when the index is built.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

#: rows from which the vectors are indexed exactly: below, reading them all is as quick
EXACT_FROM = 2_000
#: rows from which the vectors are indexed approximately: an exact index of as many takes 150 MB at 384
#: dimensions in every process that reads, and 15 ms a question
APPROXIMATE_FROM = 100_000
#: minimum recall of the 16 nearest for sentences; for real questions it is about three points lower
FLOOR = 0.97
#: initial number of candidates of an approximate search that are compared by their true vectors
CANDIDATES = 160
#: minimum number of candidates in multiples of k
REFINE = 3
#: maximum number of rows matching a filter (and at most a fifth of the table) for an exact search without the index
MATCHES = 20_000
#: dimensions of a sub-vector
_SUB = 4
#: bits of a sub-vector's code: 16 codewords fit into registers (André, Kermarrec and Le Scouarnec, *Quicker ADC*, TPAMI
#: 2021), and true vectors compensate for the coarse codes
_BITS = 4
#: minimum number of vectors to learn 256 codewords (8 bits) from
_FEWEST = 256
#: size of a partition that is never split
_WHOLE = 1 << 24
#: initial number of partitions searched, and the factor of each widening
_PROBES, _STEP = 16, 1.5
#: key of :class:`Built` in the metadata of the vectors' column
_KEY = b"posology.ann"

Kind = Literal["IvfFlat", "IvfPq"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Parameters of a vector index."""

    #: LanceDB's name: ``IvfFlat`` is exact here, ``IvfPq`` approximate
    kind: Kind
    #: clusters that the vectors are sorted into
    partitions: int
    #: rows of a partition
    size: int
    #: parts that a vector is cut into, each with a code; ``None``: vectors stay whole
    sub_vectors: int | None
    #: bits of a part's code; ``None``: vectors stay whole
    bits: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Search:
    """Parameters of a vector search."""

    #: partitions searched; 0: all; ``None``: all vectors are compared without the index
    probes: int | None
    #: multiple of k whose true vectors are compared
    refine: int = 1

    def apply(self, query: Any) -> Any:
        """Apply the parameters to LanceDB's query."""
        if self.probes is None:
            return query.bypass_vector_index()
        if self.probes:
            # LanceDB would always search up to a maximum above the minimum
            query = query.nprobes(self.probes)
        else:
            query = query.minimum_nprobes(1).maximum_nprobes(0)
        return query.refine_factor(self.refine) if self.refine > 1 else query


#: exact search. LanceDB splits the only partition of an index of whole vectors when rows are added, and by default
#: searches 20 partitions
EXACT = Search(probes=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Built:
    """An approximate index, its search parameters and its recall. Stored with the table's version."""

    kind: str
    #: rows of the table when the index was trained
    rows: int
    partitions: int
    #: partitions searched for a question
    probes: int
    #: true vectors compared for k = 16
    candidates: int
    #: recall of the 16 nearest, mean over :attr:`queries`; ``None``: not measured
    recall: float | None
    #: number of the index's own sentences that recall was measured with
    queries: int
    #: rows of the table when recall was measured
    measured: int
    #: rows written since the index was trained, new and revised
    written: int = 0
    #: of these, rows written before recall was measured
    seen: int = 0

    def search(self, k: int, matching: int | None = None) -> Search:
        """Return the parameters of a search for k passages.

        Args:
            k: at least 1.
            matching: number of rows that match the filter; ``None``: there is no filter.
        """
        if matching is not None and matching <= min(MATCHES, self.measured / 5):
            return Search(probes=None)
        share = 1.0 if matching is None else min(1.0, matching / max(1, self.measured))
        # the nearest matches lie in more partitions
        probes = min(self.partitions, math.ceil(self.probes / math.sqrt(share)))
        wanted = max(REFINE * k, self.candidates)
        return Search(probes=probes, refine=math.ceil(wanted / k))

    def widest(self, k: int) -> Search:
        """Return the parameters of a search for k passages in all partitions."""
        return replace(self.search(k), probes=0)

    def dump(self) -> dict[str, Any]:
        """Return the argument of LanceDB's ``update_field_metadata``."""
        kept = json.dumps(asdict(self), sort_keys=True)
        return {"path": "vector", "metadata": {_KEY.decode(): kept}}

    @classmethod
    def read(cls, schema: Any) -> Self | None:
        """Read the index from a table's Arrow schema; ``None``: there is none, or of another format."""
        try:
            return cls(**json.loads((schema.field("vector").metadata or {})[_KEY]))
        except (KeyError, TypeError, ValueError):
            return None


def plan(
    rows: int,
    dim: int,
    *,
    exact_from: int = EXACT_FROM,
    approximate_from: int = APPROXIMATE_FROM,
) -> Plan | None:
    """Return the index for a number of rows; ``None``: no index.

    Partitions are the square root of the rows, so that finding the nearest of them costs as much as reading one.

    Args:
        rows: at least 0.
        dim: length of a vector, at least 1.
        exact_from: rows from which there is an index.
        approximate_from: rows from which it is approximate.
    """
    if rows < min(exact_from, approximate_from):
        return None
    if rows < max(approximate_from, _FEWEST):
        # one partition holds every vector, so the search is exact; what is gained is that the
        # vectors stay decoded in LanceDB's cache (7 ms instead of 57 at 45,000 rows)
        return Plan(kind="IvfFlat", partitions=1, size=_WHOLE, sub_vectors=None, bits=None)
    size = round(math.sqrt(rows))
    sub_vectors = dim // math.gcd(_SUB, dim)
    return Plan(
        kind="IvfPq",
        partitions=math.ceil(rows / size),
        size=size,
        sub_vectors=sub_vectors,
        # codes of 4 bits are kept in pairs
        bits=_BITS if sub_vectors % 2 == 0 else 2 * _BITS,
    )


def begin(planned: Plan, rows: int) -> Built:
    """Return a new approximate index with its initial search parameters."""
    return Built(
        kind=planned.kind,
        rows=rows,
        partitions=planned.partitions,
        probes=min(_PROBES, planned.partitions),
        candidates=CANDIDATES,
        recall=None,
        queries=0,
        measured=rows,
    )


def settle(start: Built, recall: Callable[[Search], float], *, floor: float = FLOOR) -> Built:
    """Widen the search until its recall suffices.

    Each step adds partitions. Every second step also adds true vectors: if all partitions are searched and recall is
    still too low, the codes are too coarse.

    Args:
        start: the initial parameters.
        recall: measures the recall of the 16 nearest.
        floor: the recall that suffices; if the widest search does not reach it, that one is returned.
    """
    now, widened = start, False
    while True:
        now = replace(now, recall=recall(now.search(16)))
        assert now.recall is not None
        if now.recall >= floor or (
            now.probes == now.partitions and now.candidates >= 16 * CANDIDATES
        ):
            return now
        probes = min(now.partitions, math.ceil(now.probes * _STEP))
        if widened or probes == now.probes:
            now = replace(now, candidates=min(16 * CANDIDATES, round(now.candidates * _STEP)))
        now, widened = replace(now, probes=probes), not widened


def config(planned: Plan) -> Any:
    """Return the plan as LanceDB takes it.

    The partition size is set, not only their number: when rows are added, LanceDB otherwise splits and joins partitions
    towards 8,192 rows each, and the measured recall would no longer hold.
    """
    from lancedb.index import IvfFlat, IvfPq

    if planned.bits is None:
        return IvfFlat(distance_type="dot", num_partitions=1, target_partition_size=_WHOLE)
    return IvfPq(
        distance_type="dot",
        target_partition_size=planned.size,
        num_sub_vectors=planned.sub_vectors,
        num_bits=planned.bits,
    )


def overlap(found: Sequence[int], nearest: Sequence[int]) -> float:
    """Return the share of ``nearest`` that is in ``found``; 1 if ``nearest`` is empty."""
    return len(set(found) & set(nearest)) / len(nearest) if nearest else 1.0
