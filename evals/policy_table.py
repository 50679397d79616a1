"""Whether a Q-table makes the router's right answers cheaper, learned and judged on simulated models.

Usage: ``python -m evals.policy_table [--questions N] [--k K] [--data PATH] [--work PATH]``.

**Every figure is simulated**, with the questions, the halves and the prices of :mod:`evals.policy`. The half that chooses
teaches: each share of the sentences is asked of every profile, and a reward weighs the mean of right answers against the
mean cost, as a share of direct RAG's (LeanContext, "Details of RL", with dollars for tokens). The pruner compresses. The other
half is reported: the router as shipped, with each fixed share, and with each table.

A table is worth shipping if its right answers are cheaper than the shipped router's beyond chance (paired bootstrap, 95 %), and
no more are wrong than of direct RAG. Prints which are; fails if any is, because none is shipped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import anyio
import numpy as np

from evals.policy import BIOASQ, PUBMEDQA, SQUAD, ask
from evals.policy_bench import SHIPPED, Bench
from evals.policy_report import DIRECT, Arms, Measured, dearer, halves, part, table
from evals.pooled import SHADOW, arguments
from orchestrator.settings import DEFAULT_COMPRESSOR
from orchestrator.training.qtable.learner import Graded, Lesson, Recipe, Taught, learn
from orchestrator.training.qtable.plan import dose
from orchestrator.training.qtable.rows import Begin
from policies.qtable import QTable, state_vector

#: shares of the sentences that are tried
SHARES = (0.1, 0.2, 0.4, 1.0)
ALPHAS = (0.5, 0.7, 0.9)


def taught(bench: Bench, found: Mapping[float, Measured], rows: np.ndarray) -> Taught:
    """Return the lessons of some questions: right answers and costs of each share, means over profiles."""
    lessons = []
    for row in map(int, rows):
        one = bench.asked[row]
        whole = found[1.0]
        lessons.append(
            Lesson(
                digest=one.id,
                vectors=state_vector(one.retrieval, "concatenation"),
                best=float(whole.right[:, row].mean()),
                grades=tuple(
                    Graded(
                        keep=keep,
                        tau=float(of.cost[:, row].mean() / whole.cost[:, row].mean()),
                        r=float(of.right[:, row].mean()),
                    )
                    for keep, of in found.items()
                ),
            )
        )
    return Taught(lessons=tuple(lessons), without={}, actions=SHARES, data="simulated")


def tables(bench: Bench, lessons: Taught, k: int) -> Iterator[tuple[str, QTable]]:
    """Yield a table for each weight of quality."""
    begin = Begin(
        started=datetime.now(UTC).isoformat(),
        model=SHADOW,
        k=k,
        mode="fused",
        compressor=DEFAULT_COMPRESSOR,
        embedder=bench.embedder,
        index="simulated",
        prompts={},
    )
    for alpha in ALPHAS:
        yield f"{SHIPPED}, Q-table, α {alpha:g}", learn(lessons, begin, Recipe(alpha=alpha))


async def measure(bench: Bench, chooses: np.ndarray, k: int) -> dict[str, Measured]:
    """Every arm on every question."""
    many = len(bench.asked)
    shares = {keep: Measured.of(await bench.run([dose(keep)] * many)) for keep in SHARES}
    found = {DIRECT: shares[1.0], SHIPPED: Measured.of(await bench.run(bench.doses(SHIPPED)))}
    for keep in SHARES[:-1]:
        name = f"{SHIPPED}:keep={keep:g}"
        found[name] = Measured.of(await bench.run(bench.doses(name)))
    for name, learned in tables(bench, taught(bench, shares, chooses), k):
        doses = bench.doses(SHIPPED, learned)
        kept = [1.0 if one.keep is None else one.keep for one in doses]
        print(f"{name}: {learned.states} states, mean share {np.mean(kept):.2f}", file=sys.stderr)
        found[name] = Measured.of(await bench.run(doses))
    return found


def verdict(aside: Arms, names: Sequence[str]) -> Iterator[tuple[bool, str]]:
    """Yield for each arm whether it is better than the shipped router, and a sentence."""
    for name in names:
        ratio, low, high = dearer(aside[name], aside[SHIPPED])
        wrong = aside[name].errors - aside[DIRECT].errors
        said = (
            f"a right answer of {name} costs ×{ratio:.3f} [{low:.3f}, {high:.3f}] one of {SHIPPED}"
        )
        yield high < 1 and wrong <= 0, f"{said}; wrong {wrong:+.3f} against direct RAG"


def main(argv: list[str] | None = None) -> int:
    """Measure and print; the exit status is 1 where a table is better than none."""
    parser = arguments("evals.policy_table", __doc__, questions=160)
    parser.add_argument("--k", type=int, default=8, help="passages a question")
    given: argparse.Namespace = parser.parse_args(argv)
    asked = [one for name in (BIOASQ, PUBMEDQA, SQUAD) for one in anyio.run(ask, name, given)]
    return report(Bench(asked, partial=True), given.seed, given.k)


def report(bench: Bench, seed: int, k: int) -> int:
    """Print the tables of both kinds of questions and of all."""
    chooses, other = halves(bench.asked, seed)
    found = anyio.run(measure, bench, chooses, k)
    print(
        f"SIMULATED models, prices of {SHADOW}, {k} passages a question, learned from {len(chooses)} questions"
    )
    origins = np.array([one.origin for one in bench.asked])
    ships = False
    for title, names in (("medical", (BIOASQ, PUBMEDQA)), (SQUAD, (SQUAD,)), ("all", (BIOASQ, PUBMEDQA, SQUAD))):  # fmt: skip
        rows = np.intersect1d(other, np.flatnonzero(np.isin(origins, names)))
        aside = part(found, rows)
        print(
            f"\n# {title}: {len(rows)} other questions\n", *table(aside, list(aside)), "", sep="\n"
        )
        for better, said in verdict(
            aside, [name for name in aside if name not in (DIRECT, SHIPPED)]
        ):
            print(said)
            ships |= better and title == "all" and "Q-table" in said
    return int(ships)


if __name__ == "__main__":
    raise SystemExit(main())
