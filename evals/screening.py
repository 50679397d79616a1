"""Work saved by screening in order, on reviews whose decisions are known; and how far the statement of recall holds.

Usage: ``python -m evals.screening PATH [--data DIR] [--questions FILE]``.

PATH is a folder or file of labels, in one of two forms:

- Cohen 2006, ``epc-ir.clean.tsv``: topic, EndNote id, PMID, decision on the abstract, decision on the article. A record is relevant if
  the article was included.
- SYNERGY, a CSV for each topic, ``TOPIC.csv`` or ``TOPIC_ids.csv``: ``label_included`` beside ``title`` and ``abstract``, or beside
  ``pmid`` (an address or digits) or ``id``.

Records without a text of their own are those of the pool in ``--data``, with its vectors; records that it does not have are left out and counted.
FILE is JSON, from topic to question. Topics of which less than half of the records has a text are left out.

Records are read 25 at a time, and the order is made again after each batch, as ``posology screen`` does. Intervals are of 95 %, by 1,000
bootstrap samples of a topic's records (of its relevant ones for recall), and of topics for the mean.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evals.pooled import shown
from orchestrator.screening.ranking import Order, by_words
from orchestrator.screening.stopping import LEAST_STEP, recall, step
from posology.index.embedders import load
from posology.types import Passage
from training.gold import DATA, rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

QUESTIONS = Path(__file__).parent / "data" / "screening.json"
#: recall that work saved is measured at, and that the rule stops at
TARGET = 0.95
_DRAWS = 1_000
_COHEN = ("topic", "endnote", "pmid", "abstract_label", "article_label")


@dataclass(frozen=True, kw_only=True, slots=True)
class Topic:
    """The records of a review, and its decisions."""

    name: str
    passages: tuple[Passage, ...]
    #: shape ``(len(passages), dim)``
    vectors: NDArray[np.float32]
    #: shape ``(len(passages),)``
    relevant: NDArray[np.bool_]
    #: records of the labels that have no text here, and relevant ones among them
    missing: tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """The abstracts of the data sets, with their vectors."""

    passages: tuple[Passage, ...]
    vectors: NDArray[np.float32]
    #: row by id, ``pmid:N`` and ids of copies included
    row: Mapping[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """The result of one topic."""

    #: work saved at 95 % recall, by the question alone, and as records are read
    by_question: float
    saved: float
    #: its interval
    interval: tuple[float, float]
    #: share of the records that was read when the rule stopped, and recall then, with its interval
    read: float
    recall: float
    between: tuple[float, float]


def main() -> None:
    """Print a row for each topic."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("path", type=Path)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--questions", type=Path, default=QUESTIONS)
    args = parser.parse_args()
    questions = json.loads(args.questions.read_text(encoding="utf-8"))
    embedder = load()
    labels = read_labels(args.path)
    if unasked := sorted(labels.keys() - questions.keys()):
        sys.exit(f"{args.questions} has no question for {', '.join(unasked)}")
    pool = None
    scores = []
    print("| topic | records | relevant | without text | WSS@95, question alone | WSS@95 | read for 95 % | read at the stop | "
          "recall then | seconds |\n" + "| --- " * 10 + "|")  # fmt: skip
    for name, given in sorted(labels.items()):
        if pool is None and not all(one.get("title") or one.get("abstract") for one in given):
            pool = read_pool(args.data)
        topic = make_topic(name, given, pool, embedder)
        if topic.missing[0] > len(topic.passages) or not topic.relevant.any():
            print(
                f"| {name} | {len(topic.passages):,} | left out | {topic.missing[0]:,} |" + " |" * 6
            )
            continue
        started = time.perf_counter()
        one = score(topic, embedder.embed_queries([questions[name]])[0], questions[name])
        scores.append(one)
        print(f"| {name} | {len(topic.passages):,} | {topic.relevant.sum()} | {topic.missing[0]} ({topic.missing[1]} relevant) | "
              f"{one.by_question:.3f} | {one.saved:.3f} [{one.interval[0]:.3f}, {one.interval[1]:.3f}] | {TARGET - one.saved:.1%} | "
              f"{one.read:.1%} | {one.recall:.3f} [{one.between[0]:.3f}, {one.between[1]:.3f}] | {time.perf_counter() - started:.0f} |", flush=True)  # fmt: skip
    print(f"| mean of {len(scores)} | | | | {shown([one.by_question for one in scores])} | {shown([one.saved for one in scores])} | | "
          f"{shown([one.read for one in scores])} | {shown([one.recall for one in scores])} | |")  # fmt: skip
    missed = [one for one in scores if one.recall < TARGET]
    print(f"\nThe rule stopped below {TARGET:.0%} recall in {len(missed)} of {len(scores)} topics.")


def score(topic: Topic, vector: NDArray[np.float32], question: str) -> Score:
    """Read a topic in order, and measure it."""
    ids = [one.id for one in topic.passages]
    relevant = dict(zip(ids, map(bool, topic.relevant), strict=True))
    order = Order(ids, topic.vectors, vector, by_words(question, topic.passages))
    read: dict[str, bool] = {}
    stopped: int | None = None
    while len(read) < len(ids):
        read |= {one: relevant[one] for one in order.unread(read)[:LEAST_STEP]}
        if stopped is None and len(read) >= step(len(ids)):
            stand = recall(list(read.values()), len(ids))
            stopped = len(read) if stand.reached(TARGET) else None
    assert stopped is not None
    labels = np.array(list(read.values()))
    by_question = np.array([relevant[one] for one in order.unread({})])
    lot = np.random.default_rng(0)
    drawn = np.sort(lot.integers(0, len(ids), (_DRAWS, len(ids))), axis=1)
    samples = [saved(labels[one]) for one in drawn if labels[one].any()]
    places = np.flatnonzero(labels) < stopped
    again = lot.choice(places, (_DRAWS, len(places))).mean(axis=1)
    return Score(
        by_question=saved(by_question),
        saved=saved(labels),
        interval=_interval(samples),
        read=stopped / len(ids),
        recall=float(places.mean()),
        between=_interval(again),
    )


def saved(labels: NDArray[np.bool_]) -> float:
    """Return the work saved over sampling at 95 % recall (WSS@95; Cohen et al., JAMIA 13:206, 2006).

    Args:
        labels: whether each record is relevant, in the order of reading.
    """
    counts = np.cumsum(labels)
    read = int(np.searchsorted(counts, np.ceil(TARGET * counts[-1] - 1e-9))) + 1
    return 1 - read / len(labels) - (1 - TARGET)


def _interval(values: Sequence[float] | NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def read_labels(path: Path) -> dict[str, list[dict[str, str]]]:
    """Return the labelled rows of each topic."""
    topics: dict[str, list[dict[str, str]]] = defaultdict(list)
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        if file.suffix not in (".csv", ".tsv"):
            continue
        with file.open(encoding="utf-8-sig", newline="") as opened:
            if file.suffix == ".tsv":
                for one in csv.DictReader(opened, _COHEN, delimiter="\t"):
                    label = str(int(one["article_label"] == "I"))
                    topics[one["topic"]].append({"pmid": one["pmid"], "label_included": label})
            else:
                name = file.stem.removesuffix("_ids").removeprefix("Cohen_2006_")
                topics[name] += csv.DictReader(opened)
    return dict(topics)


def read_pool(data: Path) -> Pool:
    """Return the pool."""
    passages: list[Passage] = []
    row: dict[str, int] = {}
    for number, one in enumerate(rows(data / "pool.jsonl.gz")):
        passages.append(Passage(id=one["id"], title=one.get("title") or "", text=one["text"]))
        pmid = [f"pmid:{one['pmid']}"] if one.get("pmid") else []
        for name in (one["id"], *one.get("also", ()), *pmid):
            row.setdefault(name, number)
    vectors = np.load(data / "pool.minilm.f16.npy").astype(np.float32)
    return Pool(passages=tuple(passages), vectors=vectors, row=row)


def make_topic(
    name: str, given: Sequence[Mapping[str, str]], pool: Pool | None, embedder: Any
) -> Topic:
    """Return a topic by its labels; a record that stands in several rows is relevant if it is in one."""
    found: dict[str, tuple[Passage, int | None]] = {}
    relevant: dict[str, bool] = {}
    missing = [0, 0]
    for one, (passage, row) in zip(given, _texts(given, pool), strict=True):
        included = one["label_included"] == "1"
        if passage is None:
            missing[0] += 1
            missing[1] += included
            continue
        found[passage.id] = (passage, row)
        relevant[passage.id] = relevant.get(passage.id, False) or included
    passages = tuple(passage for passage, _ in found.values())
    stored = [row for _, row in found.values() if row is not None]
    if pool is not None and len(stored) == len(passages):
        vectors = pool.vectors[stored]
    else:
        vectors = embedder.embed_queries([f"{one.title}. {one.text}" for one in passages])
    return Topic(
        name=name,
        passages=passages,
        vectors=vectors,
        relevant=np.array(list(relevant.values()), dtype=bool),
        missing=(missing[0], missing[1]),
    )


def _texts(
    given: Sequence[Mapping[str, str]], pool: Pool | None
) -> Iterator[tuple[Passage | None, int | None]]:
    """Yield each record's text, and its row in the pool; none: it has no text."""
    for number, one in enumerate(given):
        title, text = one.get("title") or "", one.get("abstract") or ""
        name = one.get("id") or "pmid:" + (one.get("pmid") or "").rstrip("/").rpartition("/")[2]
        if title or text:
            yield Passage(id=f"record:{number}", title=title, text=text or title), None
        elif pool is not None and name in pool.row:
            row = pool.row[name]
            yield pool.passages[row], row
        else:
            yield None, None


if __name__ == "__main__":
    main()
