"""How fast passages are encoded, by which backend, and what that does to retrieval and to the pruner.

``python -m evals.encoding --data DIR [--every 1] [--pruner N] [--limit N] [--block N]``

* Passages: the pool, mixed, block by block, each block by ONNX int8 and every K-th by torch float32 as well, in
  turns, so that other work on the machine slows both. ``--every 1`` encodes all of the pool by both. Passages a
  second of the clock and of a processor, in the blocks that both encoded.
* hit@10 of PubMedQA and SciFact's claims with evidence among these passages, dense, for queries and passages
  of each backend and for a mixture. Passages that torch did not encode have the data set's own vectors, which
  are torch's in float32. Differences are paired, with 95 % bootstrap intervals over questions.
* Pruner: gold sentences kept and characters left on SQuAD's questions, five paragraphs each, by two backends.

Both backends have as many threads as there are cores. What a block took is kept under ``--work``: the same command
goes on where a run was broken off. On stderr stands what each block took, how many cores were busy with it, and how
long the rest of that stage will take. ``--limit N`` tries all of it on a few passages and questions,
``--block N`` in shorter turns.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evals.encoding_turns import Clock, Cost, Turns, same_machine, written
from evals.pooled import WORK, interval, shown
from orchestrator.settings import environment, prepare_libraries
from orchestrator.training.artefacts.gold import Question, pubmedqa, scifact
from posology.index.embedders import load
from posology.index.embedders.onnx.forward import cores
from posology.index.embedders.options import Options
from posology.types import Passage

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


def encode_pool(
    rows: Sequence[Mapping[str, Any]],
    embedders: Mapping[str, SentenceTransformerEmbedder],
    folder: Path,
    *,
    every: int,
    size: int,
) -> dict[str, dict[int, NDArray[np.float32]]]:
    """Each backend's vectors of the blocks that it encoded, by the block's number.

    Args:
        rows: of the pool.
        embedders: by backend.
        folder: where what blocks gave is kept.
        every: blocks a block of torch float32.
        size: passages of a block.
    """
    blocks = [rows[start : start + size] for start in range(0, len(rows), size)]
    turns = Turns("passages", [EXACT, FAST], list(map(len, blocks)), folder)

    def work(name: str, block: int) -> Cost:
        passages = [passage(row) for row in blocks[block]]
        clock = Clock()
        encoded = embedders[name].embed_passages(passages, [()] * len(passages))
        cost = clock.cost(len(passages))
        with written(turns.path(name, block, ".npy")) as draft, draft.open("wb") as file:
            np.save(file, np.array([one.vector for one in encoded]))
        return cost

    turns.run(work, wanted=lambda name, block: name == FAST or block % every == 0)
    print(f"\npassages' vectors, {len(rows)} passages in blocks of {size}")
    turns.report(len(rows))
    found = {
        name: {block: np.load(turns.path(name, block, ".npy")) for block in sorted(costs)}
        for name, costs in turns.costs.items()
    }
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
    paragraphs = list(_rows(data / "squad11_dev_part1.jsonl.gz"))
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


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


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
    parser.add_argument("--work", type=Path, default=WORK / "encoding", help="kept between runs")
    parser.add_argument("--every", type=int, default=4, help="blocks a block of torch float32")
    parser.add_argument("--block", type=int, default=BLOCK, help="passages of a turn")
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
    pool = list(_rows(given.data / POOL))
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
    folder = given.work / f"{len(rows)}-{given.block}-{embedders[FAST].name.replace(':', '-')}"
    same_machine(folder, {name: one.describes for name, one in embedders.items()})
    found = encode_pool(rows, embedders, folder, every=given.every, size=given.block)
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
