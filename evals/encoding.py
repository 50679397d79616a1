"""Measures how fast torch and ONNX int8 encode passages, and what int8 changes in retrieval and in the pruner.

``python -m evals.encoding --data DIR [--every 1] [--pruner N] [--limit N] [--block N]``

* Passages: the pool, shuffled, block by block. ONNX int8 encodes each block, torch float32 every K-th as well, in
  turns, so that other work on the machine slows both. ``--every 1`` encodes the whole pool with both. Printed:
  passages a second of wall time and of CPU time, in the blocks that both encoded.
* hit@10 of PubMedQA and of SciFact's claims with evidence among these passages, dense, for queries and passages of
  each backend and for a mixture. Passages that torch did not encode have the data set's own vectors, which are
  torch's in float32. Differences are paired, with 95 % bootstrap intervals over questions.
* Pruner: gold sentences kept and characters left on SQuAD's questions, five paragraphs each, by both backends.

Both backends use as many threads as there are cores. ``--limit N`` runs everything on a few passages and questions.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evals.pooled import interval, shown
from orchestrator.environment import environment, prepare_libraries
from posology.devices import cores
from posology.index.embedders import load
from posology.index.embedders.options import Options
from posology.types import Passage
from training.gold import WORK, Question, pubmedqa, scifact
from training.gold import rows as read

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder

POOL = "pool.jsonl.gz"
#: passages of a turn
BLOCK = 256
EXACT, FAST = "torch float32", "onnx int8"
#: least passages of a trial
LEAST = 20


def backends(work: Path) -> dict[str, Options]:
    """Return the options of both backends; exports are kept under ``work``."""
    cache = work / "onnx"
    return {
        EXACT: Options(backend="torch", precision="float32"),
        FAST: Options(backend="onnx", precision="int8", cache=cache, threads=cores()),
    }


def order(pool: Sequence[Mapping[str, Any]], gold: frozenset[str], n: int) -> list[int]:
    """Rows of the pool: the gold ones, then others at random, ``n`` or all gold ones, mixed."""
    first = [i for i, row in enumerate(pool) if row["id"] in gold]
    others = [i for i, row in enumerate(pool) if row["id"] not in gold]
    random.Random(1).shuffle(others)
    found = first + others[: max(n - len(first), 0)]
    random.Random(2).shuffle(found)
    return found


@dataclass(kw_only=True, slots=True)
class Cost:
    """Passages of some blocks, and the seconds that a backend took for them."""

    items: int = 0
    wall: float = 0.0
    processor: float = 0.0


def encode_pool(
    rows: Sequence[Mapping[str, Any]],
    embedders: Mapping[str, SentenceTransformerEmbedder],
    *,
    every: int,
    size: int,
) -> dict[str, dict[int, NDArray[np.float32]]]:
    """Return each backend's vectors of the blocks that it encoded, by the block's number; print speeds.

    Args:
        rows: rows of the pool.
        embedders: embedders by backend.
        every: blocks a block of torch float32.
        size: passages a block.
    """
    blocks = [rows[start : start + size] for start in range(0, len(rows), size)]
    found: dict[str, dict[int, NDArray[np.float32]]] = {EXACT: {}, FAST: {}}
    costs = {EXACT: Cost(), FAST: Cost()}
    for number, block in enumerate(blocks):
        shared = number % every == 0
        passages = [passage(row) for row in block]
        # the first one alternates, because the machine's speed drifts
        for name in ((EXACT, FAST), (FAST, EXACT))[number % 2]:
            if name == EXACT and not shared:
                continue
            wall, processor = time.perf_counter(), time.process_time()
            encoded = embedders[name].embed_passages(passages, [()] * len(passages))
            if shared:
                costs[name].items += len(passages)
                costs[name].wall += time.perf_counter() - wall
                costs[name].processor += time.process_time() - processor
            found[name][number] = np.array([one.vector for one in encoded])
        print(f"block {number + 1} of {len(blocks)}", file=sys.stderr, flush=True)
    print(f"\npassages' vectors, {len(rows)} passages in blocks of {size}")
    for name, cost in costs.items():
        print(
            f"  {name:14} {cost.items} passages in {cost.wall:.1f} s: {cost.items / cost.wall:.2f} a second, "
            f"{cost.items / cost.processor:.2f} a second of a processor; {cost.processor / cost.wall:.2f} cores busy"
        )
    exact, fast = costs[EXACT], costs[FAST]
    print(
        f"  {FAST} is {exact.wall / fast.wall:.2f} times as fast as {EXACT}, "
        f"{exact.processor / fast.processor:.2f} by processor time"
    )
    pairs = [(own * found[FAST][block]).sum(axis=1) for block, own in found[EXACT].items()]
    cosines = np.concatenate(pairs)
    print(f"  cosine of both: mean {cosines.mean():.5f}, least {cosines.min():.5f}")
    return found


def hits(
    queries: NDArray[np.float32],
    passages: NDArray[np.float32],
    gold: Sequence[frozenset[int]],
    n: int = 10,
) -> NDArray[np.float64]:
    """Whether any gold passage is among the first n, for each question."""
    scores = queries @ passages.T
    best = np.argpartition(-scores, n, axis=1)[:, :n]
    return np.array([bool(g & set(b)) for g, b in zip(gold, best.tolist(), strict=True)], float)


def retrieval(
    sets: Mapping[str, Sequence[Question]],
    ids: Sequence[str],
    vectors: Mapping[str, NDArray[np.float32]],
    embedders: Mapping[str, SentenceTransformerEmbedder],
) -> None:
    """Print hit@10 of each pair of backends."""
    place = {own: i for i, own in enumerate(ids)}
    for title, questions in sets.items():
        gold = [frozenset(place[i] for i in q.gold if i in place) for q in questions]
        texts = [q.text for q in questions]
        asked = {
            name: np.concatenate([e.embed_queries([t]) for t in texts])
            for name, e in embedders.items()
        }
        same = (asked[EXACT] * asked[FAST]).sum(axis=1)
        print(
            f"\n{title}, {len(texts)} questions; queries' cosine mean {same.mean():.5f}, least {same.min():.5f}"
        )
        base = hits(asked[EXACT], vectors[EXACT], gold)
        for query in (EXACT, FAST):
            for of in (EXACT, FAST):
                own = hits(asked[query], vectors[of], gold)
                low, high = interval(own - base)
                print(
                    f"  queries {query:14} passages {of:14} hit@10 {shown(own)}"
                    f"  difference {(own - base).mean():+.4f} [{low:+.4f}, {high:+.4f}]"
                )


def prune(data: Path, n: int, embedders: Mapping[str, SentenceTransformerEmbedder]) -> None:
    """Print what the pruner keeps of the gold sentences, by the backend of question and passages."""
    from evals import pruner_latency
    from strategies.compression.late.codec import LateCodec
    from strategies.compression.late.pruner import Pruner

    codec, pruner = LateCodec.packaged(), Pruner()
    paragraphs = read(data / "squad11_dev_part1.jsonl.gz")
    rng = random.Random(4)
    picked = rng.sample([i for i, row in enumerate(paragraphs) if row["qas"]], n)
    kept: dict[tuple[str, str], list[float]] = defaultdict(list)
    left: dict[tuple[str, str], list[float]] = defaultdict(list)
    for i in picked:
        row = paragraphs[i]
        asked = row["qas"][0]
        others = rng.sample([j for j in range(len(paragraphs)) if j != i], 4)
        passages = [Passage(id=str(j), text=paragraphs[j]["context"]) for j in (i, *others)]
        begins = {answer["answer_start"] for answer in asked["answers"]}
        whole = sum(len(p.text) for p in passages)
        made = {
            name: pruner_latency.retrieval(asked["question"], passages, embedder, codec)
            for name, embedder in embedders.items()
        }
        for query, of_query in made.items():
            for of, of_passages in made.items():
                mixed = _with_query(of_passages, of_query)
                spans = [
                    (e.passage.id, s.start, s.end)
                    for e in pruner(mixed, None).excerpts
                    for s in e.sentences
                ]
                holds = any(p == str(i) and any(a <= b < z for b in begins) for p, a, z in spans)
                kept[query, of].append(float(holds))
                left[query, of].append(sum(z - a for _, a, z in spans) / whole)
    print(
        f"\npruner at its threshold, {n} of SQuAD's questions, the gold paragraph and four others"
    )
    for (query, of), found in kept.items():
        print(
            f"  queries {query:14} passages {of:14} gold kept {shown(found)}"
            f"  characters left {shown(left[query, of])}"
        )


def _with_query(passages: Any, query: Any) -> Any:  # retrievals: their class is imported late
    from dataclasses import replace

    return replace(passages, query_vector=query.query_vector, query_tokens=query.query_tokens)


def passage(row: Mapping[str, Any]) -> Passage:
    """As ingest makes it."""
    return Passage(id=row["id"], title=row.get("title") or "", text=row["text"])


def _prepare() -> None:
    """Begin again with the environment that commands have: numpy has read it by now, and its threads would spin."""
    before = environment()
    prepare_libraries()
    if environment() != before:
        os.execv(sys.executable, [sys.executable, "-m", "evals.encoding", *sys.argv[1:]])  # noqa: S606 - itself


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        prog="evals.encoding", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--work", type=Path, default=WORK / "encoding", help="folder of exports")
    parser.add_argument(
        "--every", type=int, default=4, help="encode one block in N with torch float32"
    )
    parser.add_argument("--block", type=int, default=BLOCK, help="passages a block")
    parser.add_argument("--pruner", type=int, default=200, help="questions; 0: none")
    parser.add_argument(
        "--limit", type=int, help="passages, and a tenth as many questions of each set"
    )
    given = parser.parse_args()
    if min(given.every, given.block) < 1 or (given.limit is not None and given.limit < LEAST):
        parser.error(f"--every and --block are 1 at least, and --limit {LEAST}")
    _prepare()
    import torch

    torch.set_num_threads(cores())
    options = backends(given.work)
    pool = read(given.data / POOL)
    sets = {"PubMedQA": pubmedqa(given.data), "SciFact": scifact(given.data)}
    if given.limit is not None:
        sets = {title: questions[: given.limit // 10] for title, questions in sets.items()}
    gold = frozenset(i for questions in sets.values() for q in questions for i in q.gold)
    picked = order(pool, gold, min(given.limit or len(pool), len(pool)))
    rows = [pool[i] for i in picked]
    embedders = {name: load(options=one) for name, one in options.items()}
    for embedder in embedders.values():
        # memory for the largest batches is had before anything is measured
        embedder.embed_passages([passage(row) for row in rows[:16]], [()] * len(rows[:16]))
    found = encode_pool(rows, embedders, every=given.every, size=given.block)
    stored = np.load(given.data / "pool.minilm.f16.npy")[picked].astype(np.float32)
    stored /= np.linalg.norm(stored, axis=1, keepdims=True)
    for block, own in found[EXACT].items():
        start = block * given.block
        stored[start : start + len(own)] = own
    fast = np.concatenate([found[FAST][b] for b in sorted(found[FAST])])
    retrieval(sets, [row["id"] for row in rows], {EXACT: stored, FAST: fast}, embedders)
    if given.pruner:
        prune(given.data, min(given.pruner, given.limit or given.pruner), embedders)


if __name__ == "__main__":
    main()
