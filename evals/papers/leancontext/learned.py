"""Q-tables that are learned from BioASQ's questions by the offline reader's answers."""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from evals import pooled
from evals.papers.bioasq import Bench, open_bench
from evals.policy.exploration import Half, explore
from orchestrator.training.qtable.learner import Recipe, learn
from policies.qtable import QTable, choose, observe

if TYPE_CHECKING:
    from posology.types import Retrieval

#: passages a question and questions that are learned from (the paper: 20 articles at N = 8)
K, QUESTIONS = 8, 60


def table(data: Path, work: Path, kind: str = "difference") -> QTable:
    """Return a Q-table, learned where it is not yet; its answers are kept in the folder of work. Blocking.

    The questions are those that the packaged cross-encoder was calibrated on, and share no article with those that are
    asked. Each is answered by the reader by likeness with every share of its sentences, 600 calls in all.

    Args:
        data: folder of the data sets.
        work: folder in which answers are kept.
        kind: of states, one of :data:`~policies.qtable.STATES`.
    """
    half = _explored(data, work)
    return learn(half.taught, half.begin, Recipe(kind=kind))


def share(table: QTable, retrieval: Retrieval) -> float:
    """Return the share of the sentences that a table keeps whole."""
    return choose(table, observe(table, retrieval)).keep


@lru_cache(maxsize=1)
def _explored(data: Path, work: Path) -> Half:
    bench = open_bench(data, work)
    pool = _pool(bench)
    given = argparse.Namespace(
        questions=min(QUESTIONS, len(pool.questions) // 2), k=K, work=work / "leancontext"
    )
    reader = pooled.offline_reader(bench.embedder)

    async def run() -> Half:
        return await explore(pool, "train", given, reader)

    # in a thread of its own, because the caller may have an event loop
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: anyio.run(run)).result()


def _pool(bench: Bench) -> pooled.Pool:
    """Return the questions to learn from as the experiments on SQuAD's pool take them."""
    return pooled.Pool(
        index=bench.index,
        retriever=bench.retriever,
        embedder=bench.embedder,
        questions=tuple(
            (pooled.Question(id=q.id, text=q.text, answers=q.answers, passage=next(iter(q.gold))),)
            for q in bench.corpus.part("dev")
        ),
    )
