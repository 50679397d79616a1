"""How the vectors of a table are indexed and searched, from how many rows it has, and how well that finds.

A small table has no index; a middling one is searched exactly, its vectors held decoded in memory. A large one is
searched by IVF-PQ (Jégou, Douze and Schmid, *Product quantization for nearest neighbor search*, TPAMI 2011): a
question is compared with the codes of the passages in the partitions nearest to it, and with the true vectors of the
best of these. How many partitions, and how many vectors, is settled when the index is built, by recall.
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
#: share of the 16 nearest that an approximate search must find of sentences: of real questions it then finds
#: about three points less
FLOOR = 0.97
#: candidates of any approximate search that are compared by their true vectors, before recall asks for more
CANDIDATES = 160
#: the same in multiples of k, where k is large
REFINE = 3
#: most rows that a filter lets through for all of their vectors to be compared, a fifth of the table at most: no
#: index is asked then
MATCHES = 20_000
#: dimensions of a sub-vector
_SUB = 4
#: bits of a sub-vector's code: with 16 codewords to choose from, codes are looked up in registers
#: (André, Kermarrec and Le Scouarnec, *Quicker ADC*, TPAMI 2021), and true vectors settle what that is too coarse for
_BITS = 4
#: vectors that 256 codewords, those of 8 bits, can be learned from
_FEWEST = 256
#: size of a partition that is never split
_WHOLE = 1 << 24
#: what a question looks into first, and by how much more each time that too few are found
_PROBES, _STEP = 16, 1.5
#: key of :class:`Built` in the metadata of the vectors' column
_KEY = b"posology.ann"

Kind = Literal["IvfFlat", "IvfPq"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How the vectors of a table are to be indexed."""

    #: as LanceDB calls it: ``IvfFlat`` is exact here, ``IvfPq`` approximate
    kind: Kind
    #: clusters that the vectors are sorted into
    partitions: int
    #: rows of a partition
    size: int
    #: parts that a vector is cut into, each with a code; ``None``: vectors stay whole
    sub_vectors: int | None
    #: of each part's code; ``None``: there are none
    bits: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Search:
    """How one question is searched for."""

    #: partitions that are looked into; 0: all of them; ``None``: no index is asked, all vectors are compared
    probes: int | None
    #: multiple of k whose true vectors are compared
    refine: int = 1

    def apply(self, query: Any) -> Any:
        """LanceDB's query for a vector, told to be searched like this."""
        if self.probes is None:
            return query.bypass_vector_index()
        if self.probes:
            # a maximum above the minimum would always be looked into
            query = query.nprobes(self.probes)
        else:
            query = query.minimum_nprobes(1).maximum_nprobes(0)
        return query.refine_factor(self.refine) if self.refine > 1 else query


#: of a table that has no approximate index. Where it has one of whole vectors, LanceDB splits its only partition when it
#: adds rows to it, and looks into 20 partitions unless told otherwise
EXACT = Search(probes=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Built:
    """An approximate index as it was built, and what it finds. Kept with the version of the table that has it."""

    kind: str
    #: of the table when the index was trained
    rows: int
    partitions: int
    #: partitions that a question looks into
    probes: int
    #: true vectors that it compares, for k of 16
    candidates: int
    #: share of the 16 nearest that were found, mean of :attr:`queries`; ``None``: it was not measured
    recall: float | None
    #: sentences of the index's own passages that were searched for
    queries: int
    #: rows of the table when that was measured
    measured: int
    #: rows that were written since the index was trained, new ones and revised ones
    written: int = 0
    #: how many of them had been when recall was measured
    seen: int = 0

    def search(self, k: int, matching: int | None = None) -> Search:
        """How k passages are searched for.

        Args:
            k: at least 1.
            matching: rows that a filter lets through; ``None``: there is no filter.
        """
        if matching is not None and matching <= min(MATCHES, self.measured / 5):
            return Search(probes=None)
        share = 1.0 if matching is None else min(1.0, matching / max(1, self.measured))
        # the nearest of those that match lie further away, in more partitions
        probes = min(self.partitions, math.ceil(self.probes / math.sqrt(share)))
        wanted = max(REFINE * k, self.candidates)
        return Search(probes=probes, refine=math.ceil(wanted / k))

    def widest(self, k: int) -> Search:
        """How k passages are searched for where too few of them lie in the nearest partitions."""
        return replace(self.search(k), probes=0)

    def dump(self) -> dict[str, Any]:
        """What LanceDB's ``update_field_metadata`` takes."""
        kept = json.dumps(asdict(self), sort_keys=True)
        return {"path": "vector", "metadata": {_KEY.decode(): kept}}

    @classmethod
    def read(cls, schema: Any) -> Self | None:
        """What a table's Arrow schema says of its index; ``None``: nothing that is understood."""
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
    """How the vectors of so many rows are to be indexed; ``None``: not at all.

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
    """How an approximate index of so many rows is searched before its recall is known."""
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
    """Look into more partitions, and compare more true vectors, until enough is found.

    Every second step compares more too: where all is looked into and too little found, the codes are too coarse.

    Args:
        start: where to begin.
        recall: share of the 16 nearest that a search finds.
        floor: the share that is enough; where not even the widest search reaches it, that is what is kept.
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
    """The plan as LanceDB takes it.

    The size of a partition is said besides their number: whenever rows are added, LanceDB splits and joins partitions
    towards 8,192 rows each unless another size is wanted, and what was measured would hold no more.
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
    """Share of ``nearest`` that is in ``found``; 1 where there is none."""
    return len(set(found) & set(nearest)) / len(nearest) if nearest else 1.0
