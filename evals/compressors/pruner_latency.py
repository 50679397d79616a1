"""Measures the pruner's time for 16 passages at question time, and the time to encode them then.

``python -m evals.compressors.pruner_latency [--data DIR]``. Abstracts drawn from the pool, with token codes as ingest makes
them. Each draw is pruned many times; wall time on a busy machine says more about the machine, so processor
time stands beside it. One thread for linear algebra, as the product sets it.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.environment import prepare_libraries

if TYPE_CHECKING:
    from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder
    from posology.types import Passage, Retrieval
    from strategies.compression.late.codec import LateCodec

PASSAGES = 16
DRAWS = 5
RUNS = 40
QUESTIONS = (
    "Does zinc shorten the duration of the common cold in children compared with placebo?",
    "Which gene mutations are associated with early onset of the disease?",
    "How many patients had a relapse within a year of surgery?",
    "Regular exercise lowers blood pressure in adults with hypertension.",
    "What is the effect of statins versus diet alone on the risk of stroke?",
)


def retrieval(
    question: str,
    passages: list[Passage],
    embedder: SentenceTransformerEmbedder,
    codec: LateCodec,
) -> Retrieval:
    """As an index with token codes gives it."""
    import numpy as np

    from posology.query import make_query
    from posology.text.sentences import split
    from posology.types import Ranking, Retrieval, Retrieved

    sentences = [split(p.text) for p in passages]
    made = embedder.embed_passages(passages, sentences, codec)
    none = Ranking(method="dense", hits=())
    asked = embedder.encode_query(question)
    return Retrieval(
        query=make_query(question),
        passages=tuple(
            Retrieved(
                passage=passage,
                sentences=of,
                vector=one.vector,
                sentence_vectors=np.round(one.sentence_vectors * 127).astype(np.int8),
                tokens=one.tokens,
            )
            for passage, of, one in zip(passages, sentences, made, strict=True)
        ),
        query_vector=asked.vector,
        dense=none,
        bm25_rerank=none,
        bm25=none,
        fused=none,
        index_version="none",
        query_tokens=asked.tokens,
        codec=codec.name,
    )


def timed(name: str, run: Callable[[], object], times: int) -> list[tuple[float, float]]:
    """Wall and processor time of each run, in milliseconds; printed too."""
    found = []
    for _ in range(times):
        wall, own = time.perf_counter(), time.process_time()
        run()
        found.append(((time.perf_counter() - wall) * 1e3, (time.process_time() - own) * 1e3))
    show(name, found)
    return found


def show(name: str, found: list[tuple[float, float]]) -> None:
    """Print quantiles of wall and of processor time."""
    import numpy as np

    wall, own = np.array(found).T
    print(
        f"  {name:26s} wall p50 {np.median(wall):8.1f}  p90 {np.quantile(wall, 0.9):8.1f}"
        f"  least {wall.min():8.1f} | processor p50 {np.median(own):8.1f}  least {own.min():8.1f} ms",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="evals.compressors.pruner_latency", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    given = parser.parse_args()
    # the libraries read it when they are first imported
    prepare_libraries()
    import numpy as np
    import torch

    from posology.index import tokens as stored
    from posology.index.embedders import load
    from posology.types import Passage
    from strategies.compression.late.codec import LateCodec
    from strategies.compression.late.pruner import Pruner
    from training.gold import rows
    from training.pruner_cases import POOL

    codec, pruner, embedder = LateCodec.packaged(), Pruner(), load(None)
    rng = random.Random(3)
    pool = [r for r in rows(given.data / POOL) if r["text"]]
    pruned, encoded, codes, vectors = [], [], [], []
    for question in QUESTIONS[:DRAWS]:
        passages = [
            Passage(id=row["id"], title=row.get("title") or "", text=row["text"])
            for row in rng.sample(pool, PASSAGES)
        ]
        wall, own = time.perf_counter(), time.process_time()
        found = retrieval(question, passages, embedder, codec)
        encoded.append(((time.perf_counter() - wall) * 1e3, (time.process_time() - own) * 1e3))
        tokens = [p.tokens for p in found.passages if p.tokens is not None]
        codes += [len(stored.encode(one)) for one in tokens]
        vectors += [p.sentence_vectors.nbytes for p in found.passages]
        total = sum(len(one.codes) for one in tokens)
        print(f"{total} tokens, {sum(len(p.sentences) for p in found.passages)} sentences")
        pruner(found, None)
        pruned += timed("pruned from the index", partial(pruner, found, None), RUNS)
    print(f"{DRAWS} draws of {PASSAGES} passages, {RUNS} runs each")
    show("pruned from the index", pruned)
    show(f"encoded, {torch.get_num_threads()} threads", encoded)
    print(
        f"bytes a passage: {np.mean(codes):.0f} of token codes, {np.mean(vectors):.0f} of its sentences' vectors"
    )


if __name__ == "__main__":
    main()
