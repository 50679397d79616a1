"""Measures what LeanContext's Q-table saves and what it costs in answers.

Usage: ``python -m evals.policy.qtable [--data PATH] [--questions N] [--k K] [--work DIR]``.

SQuAD's pooled paragraphs, ``k`` of them a question (8, the product's default), the offline reader, and
LeanContext with the self-information of the index. Each action is explored on questions of one half of the
paragraphs by the very code of ``posology policy train``, and measured on as many of the other half: the context's
tokens, ROUGE-1 of the answer against the answer from the whole context, and whether it holds a gold answer.

* ``ablation``, by five-fold cross-validation within the training half: kinds of states (the paper's table 5), their
  number, and alpha. Another recipe than the default is tested where it is surely better; nothing of this looks at the
  test half.
* ``test``: fixed shares, Q-tables, and no reduction. Of two fixed shares mixed at random, tokens and quality lie on
  the line between theirs: the last columns say how far above the highest such line a Q-table is at its own tokens,
  with paired bootstraps; the very last against all shares instead of these four.

Answers are kept under the folder of work, so that a second run takes a minute.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import numpy as np

from evals import pooled
from evals.policy.halves import Half, explore
from orchestrator.training.qtable.learner import ALPHA, MOST_STATES, Recipe, learn
from policies.qtable import ACTIONS, STATES, QTable
from posology.llm.offline.reader import ExtractiveReader
from training.gold import WORK

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: shares that are kept of every question
FIXED = (0.1, 0.2, 0.4, 1.0)
ALPHAS = (0.3, 0.5, 0.6, 0.7, 0.9)
NUMBERS = (1, 2, 4, 8, 16, 32)
FOLDS = 5
DRAWS = 2_000
#: texts whose token vectors are kept
_TEXTS = 8_000


def chosen(table: QTable, states: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of the action that a table chooses for each state."""
    fallback = ACTIONS.index(table.fallback)
    best = [table.best(state) for state in range(table.states)]
    return np.array([fallback if (b := best[s]) is None else b for s in states], np.int64)


def _table(half: Half, recipe: Recipe, rows: NDArray[np.int64] | None = None) -> QTable:
    """Learn from some of a half's questions."""
    lessons = half.lessons if rows is None else tuple(half.lessons[i] for i in rows)
    return learn(replace(half.taught, lessons=lessons), half.begin, recipe)


def _folds(n: int) -> list[NDArray[np.int64]]:
    return np.array_split(np.random.default_rng(0).permutation(n), FOLDS)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Trial:
    """What a recipe came to on questions that it had not seen."""

    #: of each question, shape ``(n,)``
    reward: NDArray[np.float64]
    #: the same for the one share that was best where it learned
    fixed: NDArray[np.float64]
    share: float
    rouge: float
    #: share of the questions whose state fell back
    fell_back: float


def tried(half: Half, recipe: Recipe) -> Trial:
    """Cross-validate a recipe within a half."""
    n = len(half.lessons)
    rewards, picked, single = half.rewards(recipe.alpha), np.zeros(n, int), np.zeros(n, int)
    fallen = np.zeros(n)
    for fold in _folds(n):
        seen = np.setdiff1d(np.arange(n), fold)
        table = _table(half, recipe, seen)
        states = half.states(table)[fold]
        picked[fold] = chosen(table, states)
        fallen[fold] = [table.best(state) is None for state in states]
        single[fold] = int(np.argmax(rewards[seen].mean(axis=0)))
    rows = np.arange(n)
    return Trial(
        reward=rewards[rows, picked],
        fixed=rewards[rows, single],
        share=float(half.tokens[rows, picked].sum() / half.whole.sum()),
        rouge=float(half.rouge[rows, picked].mean()),
        fell_back=float(fallen.mean()),
    )


def ablate(half: Half) -> Recipe:
    """Print what each recipe comes to in cross-validation; the default, unless another is surely better."""
    print(
        f"\nablation: {FOLDS}-fold cross-validation within the {len(half.lessons)} training questions\n"
        "gain: of the mean reward over the one fixed share that is best on the other folds\n"
        f"{'alpha':>5} {'state':>13} {'states':>6} {'reward':>7} {'gain':>26} {'tokens':>6} {'ROUGE-1':>7} "
        f"{'fell back':>9}"
    )
    recipes = [Recipe(states=1)]
    recipes += [Recipe(kind=kind, states=s) for kind in STATES for s in NUMBERS if s > 1]
    trials = {recipe: tried(half, recipe) for recipe in recipes}
    plain = Recipe(states=MOST_STATES)
    # what is better by luck alone is no reason to leave what the command does by itself
    surely = [
        recipe
        for recipe in recipes
        if recipe != plain and pooled.interval(trials[recipe].reward - trials[plain].reward)[0] > 0
    ]
    best = max([plain, *surely], key=lambda recipe: float(trials[recipe].reward.mean()))
    others = [replace(best, alpha=alpha) for alpha in ALPHAS if alpha != ALPHA]
    trials |= {recipe: tried(half, recipe) for recipe in others}
    for recipe, trial in trials.items():
        print(
            f"{recipe.alpha:>5} {recipe.kind:>13} {recipe.states:>6} {trial.reward.mean():>7.3f} "
            f"{pooled.shown(trial.reward - trial.fixed, '+.4f'):>26} {trial.share:>6.3f} "
            f"{trial.rouge:>7.3f} {trial.fell_back:>9.2f}"
        )
    print(
        f"surely better than the default ({plain.kind}, {plain.states} states): {len(surely)}; "
        f"tested: {best.kind}, {best.states} states"
    )
    return best


def _line(shares: NDArray[np.float64], values: NDArray[np.float64], at: float) -> float:
    """The highest that fixed shares, mixed at random, reach at so many tokens: their upper hull.

    Not to ask at all costs nothing, and is worth nothing.
    """
    shares, values = np.append(shares, 0.0), np.append(values, 0.0)
    best = -np.inf
    for i, left in enumerate(shares):
        for j, right in enumerate(shares):
            if left <= at <= right:
                weight = 0.0 if right == left else (at - left) / (right - left)
                best = max(best, (1 - weight) * values[i] + weight * values[j])
    return float(best)


def above(
    half: Half, picked: NDArray[np.int64], values: NDArray[np.float64], fixed: Sequence[float]
) -> tuple[float, float, float]:
    """How far a policy lies above the line between fixed shares: the value, and its 95 % interval.

    Questions are drawn anew for policy and line together.

    Args:
        half: the questions.
        picked: the place of the action of each, shape ``(n,)``.
        values: quality of each action on each question, shape ``(n, A)``.
        fixed: shares that make the line.
    """
    n, places = len(picked), [ACTIONS.index(keep) for keep in fixed]
    rows = np.arange(n)
    tokens = np.column_stack([half.tokens[rows, picked], half.tokens[:, places]])
    quality = np.column_stack([values[rows, picked], values[:, places]])

    def once(drawn: NDArray[np.int64]) -> float:
        shares = tokens[drawn].sum(axis=0) / half.whole[drawn].sum()
        means = quality[drawn].mean(axis=0)
        return float(means[0]) - _line(shares[1:], means[1:], float(shares[0]))

    draws = np.random.default_rng(0).integers(0, n, (DRAWS, n))
    low, high = np.percentile([once(drawn) for drawn in draws], [2.5, 97.5])
    return once(rows), float(low), float(high)


def test(train: Half, half: Half, best: Recipe) -> None:
    """Print what fixed shares and tables come to on the test half."""
    n = len(half.lessons)
    print(
        f"\ntest: {n} questions, {half.begin.k} passages each; {half.whole.mean():.0f} tokens of context on "
        f"average\n{'policy':>32} {'tokens saved':>22} {'ROUGE-1':>22} {'holds gold':>22} "
        f"{'ROUGE-1 above line':>25} {'gold above line':>25} {'ROUGE-1 above all shares':>25}"
    )
    for place, keep in enumerate(ACTIONS):
        if keep in FIXED:
            name = "no reduction" if keep == 1 else f"fixed {keep:g}"
            _row(name, half, np.full(n, place), line=False)
    recipes = [replace(best, alpha=alpha) for alpha in ALPHAS]
    recipes += [Recipe(kind=kind, states=MOST_STATES) for kind in STATES]
    for recipe in dict.fromkeys(recipes):
        table = _table(train, recipe)
        picked = chosen(table, half.states(table))
        name = f"{recipe.kind}, {recipe.states}, alpha {recipe.alpha:g}"
        _row(name, half, picked, line=True)
        if recipe == best:
            counts = np.bincount(picked, minlength=len(ACTIONS))
    shares = ", ".join(f"{ACTIONS[a]:g}: {count}" for a, count in enumerate(counts) if count)
    print(f"questions by share, {best.kind}, {best.states} states, alpha {best.alpha:g}: {shares}")


def _row(name: str, half: Half, picked: NDArray[np.int64], *, line: bool) -> None:
    rows = np.arange(len(picked))
    saved = 1 - half.tokens[rows, picked] / half.whole
    cells = [pooled.shown(v) for v in (saved, half.rouge[rows, picked], half.gold[rows, picked])]
    text = f"{name:>32} " + " ".join(f"{cell:>22}" for cell in cells)
    if line:
        found = (
            above(half, picked, half.rouge, FIXED),
            above(half, picked, half.gold, FIXED),
            above(half, picked, half.rouge, ACTIONS),
        )
        text += " " + " ".join(f"{v:>+8.3f} [{low:+.3f}, {high:+.3f}]" for v, low, high in found)
    print(text)


async def _run(given: argparse.Namespace) -> None:
    from threadpoolctl import threadpool_limits

    # products of small matrices take eight times as long where their threads wait for busy cores
    threadpool_limits(1, user_api="blas")
    pool = pooled.open_pool(given.data, given.work)
    reader = ExtractiveReader(pooled.CachedEncoder(pool.embedder, kept=_TEXTS), pooled.counter())
    train = await explore(pool, "train", given, reader)
    best = ablate(train)
    half = await explore(pool, "test", given, reader)
    test(train, half, best)


def main(argv: list[str] | None = None) -> int:
    """Explore, learn, and print the tables."""
    parser = argparse.ArgumentParser(prog="evals.policy.qtable", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--questions", type=int, default=400, help="of each half")
    parser.add_argument("--k", type=int, default=8, help="passages a question")
    parser.add_argument("--work", type=Path, default=WORK)
    given = parser.parse_args(argv)
    if not (given.data / pooled.FILE).exists():
        sys.exit(
            f"{given.data} has no {pooled.FILE}. Pass --data with the folder of the data sets."
        )
    anyio.run(_run, given)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
