"""What the codes of tokens cost: ``python -m evals.token_codes --data DIR [--abstracts N]``.

The same abstracts of the pool are ingested with and without codes, by the packaged embedder. Printed are
the time of ingest, the bytes of an abstract, and how long it takes to retrieve and to fetch, warm, both ways
in turn. Other work on the machine makes all of it slower.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import numpy as np

from evals.clock import Precomputed
from evals.retrieval import pubmedqa
from posology.index.build.ingest import ingest
from posology.index.embedders import load
from posology.index.schema import STORED, TABLE
from posology.index.search.retriever import Retriever
from posology.index.store import Index
from posology.index.tokens import decode
from posology.query import make_query
from posology.seams import Embedder, TokenCodec
from strategies.compression.late.codec import LateCodec

FILE = "pool.jsonl.gz"
K = 16
#: rounds before the clock counts: the first read files
_WARM = 20


def _build(path: Path, where: Path, embedder: Embedder, codec: TokenCodec | None) -> Index:
    index = Index.create(where, embedder.name, embedder.dim, codec=codec)
    started, busy = time.perf_counter(), time.process_time()
    ingest([path], index, embedder, codec=codec, finish=False)
    seconds, busy = time.perf_counter() - started, time.process_time() - busy
    index.finish()
    print(
        f"  {codec.name if codec else 'no codes':24} {seconds:6.1f} s, {busy:6.1f} s of the processor"
    )
    return index


def _sizes(index: Index) -> None:
    import lancedb

    n = index.count()
    table = lancedb.connect(index.uri).open_table(TABLE).to_arrow()
    total, codes = (sum(table[name].nbytes for name in of) / n for of in (STORED, ("tokens",)))
    print(f"\n{n} abstracts, bytes of one: {total:,.0f}, of them codes {codes:,.0f}")
    counts = [len(one.codes) for one in decode(table["tokens"]) if one is not None]
    if counts:
        print(f"tokens of one: {np.mean(counts):.0f} in the mean, {max(counts)} at most")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Times:
    """Of one thing that was done often, each a list of seconds."""

    #: by the clock, which counts what else the machine does
    clock: list[float] = field(default_factory=list)
    #: of this process on all cores
    processor: list[float] = field(default_factory=list)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Measure what is done within."""
        started, busy = time.perf_counter(), time.process_time()
        yield
        self.processor.append(time.process_time() - busy)
        self.clock.append(time.perf_counter() - started)

    def tell(self, name: str) -> None:
        """Print it, without the first, which read files."""
        p50, p95 = np.percentile(np.array(self.clock[_WARM:]) * 1e3, [50, 95])
        busy = np.median(self.processor[_WARM:]) * 1e3
        n = len(self.clock) - _WARM
        print(
            f"  {name:28} p50 {p50:6.2f} ms   p95 {p95:6.2f} ms   processor {busy:6.2f} ms   n {n}"
        )


async def _latency(indices: dict[str, Index], embedder: Embedder, texts: Sequence[str]) -> None:
    given = Precomputed(embedder.name, {text: embedder.encode_query(text) for text in texts})
    retrievers = {name: Retriever(index, given) for name, index in indices.items()}
    (vector,) = given.embed_queries(texts[:1])
    rows = {
        name: index.view().dense_rows(vector, index.count(), retracted=True).ids
        for name, index in indices.items()
    }
    times: defaultdict[str, _Times] = defaultdict(_Times)
    rng = np.random.default_rng(0)
    for turn, text in enumerate(itertools.chain(texts[:_WARM], texts)):
        pick = rng.integers(0, min(map(len, rows.values())), 3 * K)
        for name in list(indices)[:: 1 if turn % 2 else -1]:
            view = indices[name].view()
            for n in (K, 3 * K):
                with times[f"fetch {n}, {name} codes"]():
                    view.take(rows[name][i] for i in pick[:n])
            with times[f"retrieve {K}, {name} codes"]():
                await retrievers[name].retrieve(make_query(text), K)
    print("\nwarm, in turn:")
    for name in sorted(times):
        times[name].tell(name)


def main(argv: list[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="evals.token_codes", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--abstracts", type=int, default=500)
    parser.add_argument("--questions", type=int, default=200)
    args = parser.parse_args(argv)
    if not (args.data / FILE).exists():
        sys.exit(f"{args.data} has no {FILE}: name the data sets' folder with --data")
    embedder = load()
    codecs: dict[str, TokenCodec | None] = {"without": None, "with": LateCodec.packaged()}
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus.jsonl"
        with gzip.open(args.data / FILE, "rt", encoding="utf-8") as lines:
            corpus.write_text("".join(itertools.islice(lines, args.abstracts)), encoding="utf-8")
        embedder.embed_queries(["warm up"])
        print("ingest:")
        indices = {
            name: _build(corpus, Path(folder) / name, embedder, codec)
            for name, codec in codecs.items()
        }
        for index in indices.values():
            _sizes(index)
        texts = [question.text for question in pubmedqa(args.data)][: args.questions]
        anyio.run(_latency, indices, embedder, texts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
