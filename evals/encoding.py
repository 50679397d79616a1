"""How fast passages are encoded, by which backend, and what that does to retrieval and to the pruner.

``python -m evals.encoding --data DIR [--passages N] [--every K] [--ingest N] [--pruner N]``

* Passages: the pool, the gold passages first, block by block, each block by ONNX int8 and every K-th by torch
  float32 as well, in turns, so that other work on the machine slows both. Passages per second; the time of
  44,581 is that of all blocks where all were encoded, else extrapolated from those that were.
* hit@10 of PubMedQA and SciFact's claims with evidence among these passages, dense, for queries and passages
  of each backend and for a mixture. Passages that torch did not encode have the data set's own vectors, which
  are torch's in float32. Differences are paired, with 95 % bootstrap intervals over questions.
* Ingest: the whole way of abstracts into an index by four backends in turns, with token codes and without.
* Pruner: gold sentences kept and characters left on SQuAD's questions, five paragraphs each, by two backends.

What is encoded is kept under ``--work``: a run that was broken off goes on where it stopped. ``--every 1``
encodes all of the pool by both.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evals.pooled import WORK, interval, shown
from evals.retrieval import Question, pubmedqa, scifact
from orchestrator.settings import prepare_libraries
from posology.index.embedders import load
from posology.index.embedders.options import Options
from posology.types import Passage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder

POOL = "pool.jsonl.gz"
#: passages of a turn
BLOCK = 256
EXACT, FAST = "torch float32", "onnx int8"


def backends(work: Path) -> dict[str, Options]:
    """The four that are compared; exports are kept under ``work``."""
    cache = work / "onnx"
    return {
        EXACT: Options(backend="torch", precision="float32"),
        "torch bfloat16": Options(backend="torch", precision="bfloat16"),
        "onnx float32": Options(backend="onnx", precision="float32", cache=cache),
        FAST: Options(backend="onnx", precision="int8", cache=cache),
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
    every: int,
) -> dict[str, dict[int, NDArray[np.float32]]]:
    """Each backend's vectors of the blocks that it encoded, by the block's number."""
    found: dict[str, dict[int, NDArray[np.float32]]] = defaultdict(dict)
    seconds: dict[str, dict[int, float]] = defaultdict(dict)
    folder.mkdir(parents=True, exist_ok=True)
    for block, start in enumerate(range(0, len(rows), BLOCK)):
        passages = [passage(row) for row in rows[start : start + BLOCK]]
        names = [FAST, EXACT] if block % (2 * every) else [EXACT, FAST]
        for name in names:
            if name == EXACT and block % every:
                continue
            path = folder / f"{name.replace(' ', '-')}-{block:04d}.npz"
            if not path.exists():
                begun = time.perf_counter()
                encoded = embedders[name].embed_passages(passages, [()] * len(passages))
                took = time.perf_counter() - begun
                draft = path.with_suffix(".tmp.npz")
                np.savez(draft, vectors=np.array([e.vector for e in encoded]), seconds=took)
                draft.rename(path)
            kept = np.load(path)
            found[name][block] = kept["vectors"]
            seconds[name][block] = float(kept["seconds"])
    print(f"\npassages' vectors, {len(rows)} passages in blocks of {BLOCK}")
    both = sorted(set(seconds[EXACT]) & set(seconds[FAST]))
    for name in (EXACT, FAST):
        own = sum(len(v) for v in found[name].values())
        speed = own / sum(seconds[name].values())
        same = sum(len(found[name][b]) for b in both) / sum(seconds[name][b] for b in both)
        print(
            f"  {name:14} {own} passages, {speed:7.1f} a second ({same:.1f} in the blocks that both encoded):"
            f" {44_581 / speed / 60:.1f} minutes for 44,581"
            + ("" if own >= 44_581 else " (extrapolated)")
        )
    pairs = [(found[EXACT][b] * found[FAST][b]).sum(axis=1) for b in both]
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


def ingest_all(rows: Sequence[Mapping[str, Any]], options: Mapping[str, Options]) -> None:
    """Print how fast abstracts become rows of an index."""
    from posology.index.ingest import ingest
    from posology.index.store import Index
    from strategies.compression.late.codec import LateCodec
    from strategies.compression.self_information import make_annotator

    embedders = {name: load(options=o) for name, o in options.items()}
    for embedder in embedders.values():
        embedder.embed_queries(["warm up"])
    print(f"\ningest of {len(rows)} abstracts, abstracts a second")
    for codec in (None, LateCodec.packaged()):
        times: dict[str, list[float]] = defaultdict(list)
        with tempfile.TemporaryDirectory() as folder:
            for turn, start in enumerate(range(0, len(rows), BLOCK)):
                part = rows[start : start + BLOCK]
                path = Path(folder) / f"{turn}.jsonl"
                path.write_text("".join(json.dumps(row) + "\n" for row in part), encoding="utf-8")
                names = list(embedders)
                for name in names[turn % len(names) :] + names[: turn % len(names)]:
                    embedder, annotator = embedders[name], make_annotator(None)
                    index = Index.open_or_create(
                        str(Path(folder) / f"{turn}-{name}".replace(" ", "-")),
                        embedder.name,
                        embedder.dim,
                        annotator=annotator.name,
                        codec=codec,
                    )
                    begun = time.perf_counter()
                    ingest([path], index, embedder, annotator=annotator, codec=codec)
                    times[name].append(len(part) / (time.perf_counter() - begun))
        for name, found in times.items():
            print(
                f"  {name:14} {'without' if codec is None else 'with'} codes: {np.mean(found):6.1f}"
                f"  (blocks {min(found):.1f} to {max(found):.1f})"
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


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        prog="evals.encoding", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--work", type=Path, default=WORK / "encoding", help="kept between runs")
    parser.add_argument("--passages", type=int, default=44_581)
    parser.add_argument("--every", type=int, default=4, help="blocks a block of torch float32")
    parser.add_argument("--ingest", type=int, default=1_024, help="abstracts; 0: none")
    parser.add_argument("--pruner", type=int, default=200, help="questions; 0: none")
    given = parser.parse_args()
    prepare_libraries()
    options = backends(given.work)
    pool = list(_rows(given.data / POOL))
    sets = {"PubMedQA": pubmedqa(given.data), "SciFact": scifact(given.data)}
    gold = frozenset(i for questions in sets.values() for q in questions for i in q.gold)
    picked = order(pool, gold, given.passages)
    rows = [pool[i] for i in picked]
    embedders = {name: load(options=options[name]) for name in (EXACT, FAST)}
    for name, embedder in embedders.items():
        embedder.embed_queries(["warm up"])
        print(f"{name}: {embedder.describes}, {embedder.name}")
    folder = given.work / f"{len(rows)}-{embedders[FAST].name.replace(':', '-')}"
    found = encode_pool(rows, embedders, folder, max(given.every, 1))
    stored = np.load(given.data / "pool.minilm.f16.npy")[picked].astype(np.float32)
    stored /= np.linalg.norm(stored, axis=1, keepdims=True)
    for block, own in found[EXACT].items():
        stored[block * BLOCK : block * BLOCK + len(own)] = own
    fast = np.concatenate([found[FAST][b] for b in sorted(found[FAST])])
    retrieval(sets, [row["id"] for row in rows], {EXACT: stored, FAST: fast}, embedders)
    if given.ingest:
        ingest_all(rows[: given.ingest], options)
    if given.pruner:
        prune(given.data, given.pruner, embedders)


if __name__ == "__main__":
    main()
