"""BM25 of our index against rank-bm25 and bm25s: ``python -m evals.bm25_peers --data ../shared/data``.

The same 44,581 abstracts (title and text), the same questions, and the same tokens: those of the index's own tokenizer,
so that what differs is the formula, the index and the speed. hit@10: share of the questions of which a gold passage is
among the first ten. Ours has k1 1.2 and b 0.75, Lucene's; rank-bm25's and bm25s's defaults are 1.5 and 0.75.

Times are of one question at a time: its tokens are made beforehand for the peers, and within the time for ours, which
also filters out retracted passages. Memory is by how much the process grew while the index was made, or read in for ours.
bm25s is asked with the backend that it has without numba.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evals.peers_index import Peers, library, milliseconds, peers, resident
from evals.pooled import WORK
from evals.retrieval import Question
from posology.index.schema import TABLE
from posology.types import Passage

K = 10
#: questions that are asked before the clock starts
WARM = 5

Search = Callable[[int, str], Sequence[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Engine:
    """A BM25 to compare."""

    name: str
    #: seconds to build it, of tokens; ``None``: it was there
    build: float | None
    #: megabytes
    memory: float
    #: the ids of the best for the question of this place, and its text
    search: Search


def _ours(found: Peers) -> Engine:
    before = resident()
    view = found.index.view()
    found.index.warm()
    view.bm25("aspirin", K)
    return Engine(
        name="posology",
        build=_words(found),
        memory=resident() - before,
        search=lambda _, text: view.bm25(text, K, retracted=True).ids,
    )


def _words(found: Peers) -> float:
    """Seconds to index the words anew, tokenizing among them."""
    import tempfile

    import lancedb
    from lancedb.index import FTS

    table = found.index.connection.open_table(TABLE)
    texts = table.search().select(["document"]).limit(len(found.ids)).to_arrow()
    with tempfile.TemporaryDirectory() as folder:
        alone = lancedb.connect(folder).create_table("words", texts)
        started = time.perf_counter()
        config = FTS(stem=True, remove_stop_words=False, ascii_folding=True, max_token_length=60)
        alone.create_index("document", config=config)
        return time.perf_counter() - started


def _rank_bm25(
    kind: str, documents: list[list[str]], asked: list[list[str]], ids: Sequence[str]
) -> Engine | None:
    module = library("rank_bm25", "rank-bm25")
    if module is None:
        return None
    gc.collect()
    before, started = resident(), time.perf_counter()
    engine = getattr(module, kind)(documents)
    built = time.perf_counter() - started

    def search(place: int, text: str) -> list[str]:  # noqa: ARG001 (tokens are made beforehand)
        scores = engine.get_scores(asked[place])
        return [ids[i] for i in np.argsort(-scores, kind="stable")[:K]]

    return Engine(name=f"rank-bm25 {kind}", build=built, memory=resident() - before, search=search)


def _bm25s(documents: list[list[str]], asked: list[list[str]], ids: Sequence[str]) -> Engine | None:
    module = library("bm25s", "bm25s")
    if module is None:
        return None
    gc.collect()
    before, started = resident(), time.perf_counter()
    engine = module.BM25()
    engine.index(documents, show_progress=False)
    built = time.perf_counter() - started

    def search(place: int, text: str) -> list[str]:  # noqa: ARG001 (tokens are made beforehand)
        found, _ = engine.retrieve([asked[place]], k=K, show_progress=False)
        return [ids[i] for i in found[0].tolist()]

    return Engine(name="bm25s", build=built, memory=resident() - before, search=search)


def _measure(engine: Engine, sets: dict[str, tuple[Question, ...]]) -> None:
    questions = [question for asked in sets.values() for question in asked]
    for place, question in enumerate(questions[:WARM]):
        engine.search(place, question.text)
    times: list[float] = []
    hits: list[bool] = []
    for place, question in enumerate(questions):
        started = time.perf_counter()
        found = engine.search(place, question.text)
        times.append(time.perf_counter() - started)
        hits.append(bool(question.gold & set(found)))
    start, shares = 0, []
    for asked in sets.values():
        shares.append(f"{np.mean(hits[start : start + len(asked)]):9.3f}")
        start += len(asked)
    build = "      –" if engine.build is None else f"{engine.build:7.1f}"
    print(
        f"{engine.name:20} {' '.join(shares)}  {milliseconds(times)}  {build}  {engine.memory:9.0f}",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--work", type=Path, default=WORK, help="where the index is kept")
    parser.add_argument("--questions", type=int, help="of each set; default: all")
    arguments = parser.parse_args()
    found = peers(arguments.data, arguments.work, questions=arguments.questions)
    ours = _ours(found)
    table = found.index.connection.open_table(TABLE)
    started = time.perf_counter()
    passages: list[Passage] = [row.passage for row in found.index.fetch(found.ids)]
    documents = [_tokens(table, f"{one.title}\n{one.text}") for one in passages]
    asked = [_tokens(table, q.text) for questions in found.questions.values() for q in questions]
    print(
        f"{len(documents):,} abstracts tokenized for the peers: {time.perf_counter() - started:.0f} s"
    )
    print(f"{'':20} {'hit@10':>9}")
    names = " ".join(f"{name:>9}" for name in found.questions)
    print(f"{'':20} {names}  {'p50 ms':>7} {'p95 ms':>7}  {'build s':>7}  {'memory MB':>9}")
    _measure(ours, found.questions)
    made: tuple[Callable[[], Engine | None], ...] = (
        lambda: _rank_bm25("BM25Okapi", documents, asked, found.ids),
        lambda: _rank_bm25("BM25Plus", documents, asked, found.ids),
        lambda: _bm25s(documents, asked, found.ids),
    )
    for make in made:
        engine = make()
        if engine is not None:
            _measure(engine, found.questions)


def _tokens(table: object, text: str) -> list[str]:
    found = table.tokenize(text, index_name="document_idx")  # type: ignore[attr-defined]
    return [token.text for token in found]


if __name__ == "__main__":
    main()
