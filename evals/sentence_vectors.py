"""Measures whether a sentence's vector finds answers: from one pass over its passage, and from two.

``python -m evals.sentence_vectors --data DIR [--limit N] [--pruner N]``

SQuAD's paragraphs are given to the encoder with their titles and without. For each question, the sentences of the gold
paragraph and of the four nearest of the same article are ordered by cosine. *First*: the gold paragraph's best sentence
holds an answer. *Kept*: an answer sentence is among the best that fit 10, 20 or 30 % of the characters. Figures are of
even and odd questions; differences to what two passes give are paired, with 95 % bootstrap intervals. The projection has
seen neither the questions nor the paragraphs.

``--pruner N``: gold sentences that the pruner keeps, of N questions, by sentence vectors of both kinds.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evals import pruner_latency
from evals.pooled import interval, shown
from posology.index.embedders.models import load_default
from posology.index.embedders.options import Options
from posology.index.embedders.projection import packaged
from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder
from posology.text.sentences import split
from posology.types import Passage, Sentence
from training.gold import WORK
from training.gold import rows as read

if TYPE_CHECKING:
    from numpy.typing import NDArray

SQUAD = "squad11_dev_part1.jsonl.gz"
SHARES = (0.1, 0.2, 0.3)
BOTH, ONE, ALONE, CONTEXT = "two passes (mean)", "one pass (projection)", "alone", "in context"
#: paragraphs beside the gold one
_NEAR = 4


def embedders(work: Path) -> dict[str, SentenceTransformerEmbedder]:
    """Return the packaged encoder, by how it makes sentences' vectors; exports are kept under ``work``."""
    options = Options(backend="onnx", precision="int8", cache=work)
    loaded = load_default(options)
    return {
        BOTH: SentenceTransformerEmbedder(loaded),
        ONE: SentenceTransformerEmbedder(loaded, projection=packaged()),
        ALONE: SentenceTransformerEmbedder(loaded, alone=1.0),
        CONTEXT: SentenceTransformerEmbedder(loaded, alone=0.0),
    }


def score(
    paragraphs: Sequence[Mapping[str, Any]],
    sentences: Sequence[Sequence[Sentence]],
    encoded: Sequence[Any],
    asked: NDArray[np.float32],
) -> NDArray[np.float64]:
    """Return *first*, and *kept* by share, shape ``(questions, 1 + len(SHARES))``.

    Args:
        paragraphs: SQuAD's.
        sentences: of each.
        encoded: of each, as an embedder gives it.
        asked: vectors of all questions, in the order of the paragraphs.
    """
    articles: dict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(paragraphs):
        articles[row["title"]].append(i)
    found: list[list[float]] = []
    for i, row in enumerate(paragraphs):
        others = [j for j in articles[row["title"]] if j != i]
        for qa in row["qas"]:
            question = asked[len(found)]
            begins = [answer["answer_start"] for answer in qa["answers"]]
            gold = {n for n, s in enumerate(sentences[i]) if any(s.start <= b < s.end for b in begins)}  # fmt: skip
            near = sorted(others, key=lambda j: -float(encoded[j].vector @ question))[:_NEAR]
            ordered = sorted(
                (
                    (-float(cosine), j, n)
                    for j in (i, *near)
                    for n, cosine in enumerate(encoded[j].sentence_vectors @ question)
                ),
            )
            best = next((n for _, j, n in ordered if j == i), -1)
            whole = sum(len(paragraphs[j]["context"]) for j in (i, *near))
            found.append([float(best in gold)])
            for share in SHARES:
                left, kept = share * whole, 0.0
                for _, j, n in ordered:
                    length = sentences[j][n].end - sentences[j][n].start
                    if length <= left:
                        left -= length
                        kept = max(kept, float(j == i and n in gold))
                found[-1].append(kept)
    return np.array(found)


def answers(
    paragraphs: Sequence[Mapping[str, Any]], ways: Mapping[str, SentenceTransformerEmbedder]
) -> None:
    """Print the tables of *first* and *kept*."""
    sentences = [split(row["context"]) for row in paragraphs]
    texts = [qa["question"] for row in paragraphs for qa in row["qas"]]
    asked = ways[BOTH].embed_queries(texts)
    for titled in (False, True):
        passages = [
            Passage(
                id=str(i),
                title=row["title"].replace("_", " ") if titled else "",
                text=row["context"],
            )
            for i, row in enumerate(paragraphs)
        ]
        print(f"\n{len(texts)} questions, paragraphs {'with' if titled else 'without'} titles")
        print(f"{'':24}{'first':>14}" + "".join(f"{f'kept at {s:.0%}':>14}" for s in SHARES))
        base = None
        for name, embedder in ways.items():
            encoded = embedder.embed_passages(passages, sentences)
            own = score(paragraphs, sentences, encoded, asked)
            base = own if base is None else base
            halves = zip(own[0::2].mean(axis=0), own[1::2].mean(axis=0), strict=True)
            print(f"{name:24}" + "".join(f"{f'{a:.3f} / {b:.3f}':>14}" for a, b in halves))
            if own is not base:
                apart = [(own - base)[:, n] for n in range(own.shape[1])]
                print(f"{'':24}" + "".join(f"{one.mean():>+14.4f}" for one in apart))
                low_high = [interval(one) for one in apart]
                print(f"{'':24}" + "".join(f"{f'{a:+.3f}, {b:+.3f}':>14}" for a, b in low_high))


def pruned(
    paragraphs: Sequence[Mapping[str, Any]],
    ways: Mapping[str, SentenceTransformerEmbedder],
    n: int,
) -> None:
    """Print what the pruner keeps of gold sentences: the gold paragraph and four others."""
    from strategies.compression.late.codec import LateCodec
    from strategies.compression.late.pruner import Pruner

    codec, pruner, rng = LateCodec.packaged(), Pruner(), random.Random(4)
    picked = rng.sample([i for i, row in enumerate(paragraphs) if row["qas"]], n)
    kept: dict[str, list[float]] = defaultdict(list)
    left: dict[str, list[float]] = defaultdict(list)
    for i in picked:
        qa = paragraphs[i]["qas"][0]
        others = rng.sample([j for j in range(len(paragraphs)) if j != i], _NEAR)
        passages = [Passage(id=str(j), text=paragraphs[j]["context"]) for j in (i, *others)]
        begins = {answer["answer_start"] for answer in qa["answers"]}
        for name in (BOTH, ONE):
            retrieval = pruner_latency.retrieval(qa["question"], passages, ways[name], codec)
            spans = [
                (e.passage.id, s.start, s.end)
                for e in pruner(retrieval, None).excerpts
                for s in e.sentences
            ]
            holds = any(p == str(i) and any(a <= b < z for b in begins) for p, a, z in spans)
            kept[name].append(float(holds))
            left[name].append(sum(z - a for _, a, z in spans) / sum(len(p.text) for p in passages))
    print(f"\npruner at its threshold, {n} questions")
    for name, own in kept.items():
        print(f"{name:24} gold kept {shown(np.array(own))}  text left {np.mean(left[name]):.3f}")
    low, high = interval(np.array(kept[ONE]) - np.array(kept[BOTH]))
    print(f"{'difference':24} {np.mean(kept[ONE]) - np.mean(kept[BOTH]):+.4f} [{low:+.4f}, {high:+.4f}]")  # fmt: skip


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        prog="evals.sentence_vectors",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--work", type=Path, default=WORK / "projection", help="exported models")
    parser.add_argument("--limit", type=int, help="paragraphs")
    parser.add_argument("--pruner", type=int, default=400, help="questions; 0: none")
    given = parser.parse_args()
    paragraphs = read(given.data / SQUAD)[: given.limit]
    ways = embedders(given.work)
    answers(paragraphs, ways)
    if given.pruner:
        pruned(paragraphs, ways, min(given.pruner, len(paragraphs)))


if __name__ == "__main__":
    main()
