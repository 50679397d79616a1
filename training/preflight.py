"""Trains the calibrated preflight predictor and writes ``policies/models/preflight.json``.

``python -m training.preflight [--data DIR] [--index DIR] [--repeats N]``. Questions of
PubMedQA and claims of SciFact over the 44,581 abstracts of the pool. A question has the issue when no key document
is among the first three shown (BriefContext, section 5.3). The threshold is chosen on held-out questions: five folds,
repeated with other folds. A question is in one fold with all of its numbers of passages. Figures of the model:
``python -m evals.policy.preflight`` and ``policies/models/README.md``.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import anyio
import numpy as np
from numpy.typing import NDArray

from orchestrator.training.calibration.forms import Reach
from orchestrator.training.calibration.learning import (
    RECALL,
    Flags,
    Shares,
    logistic,
    model_of,
    reach,
    terms_of,
    threshold_for,
)
from policies.calibration import Calibration, Model, write
from policies.preflight import Published
from posology.index.schema import FORMAT, SPLITTER
from training.gold import DATA, WORK
from training.preflight_cases import DEPTHS, Cases, gather

#: Default folder of the pool's index; built when missing.
INDEX = WORK / f"pool-vectors-{FORMAT}-{SPLITTER}"
#: Number of passages that predictors are judged at.
K = 16
SETS = ("PubMedQA", "SciFact", "both")
_FOLDS = 5


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Judged:
    """Held-out predictions: each question's from the fold that did not train on it."""

    #: probabilities and flags, shape ``(repeats, n)`` each
    probabilities: Shares
    flags: Flags


def stacked(cases: Cases, order: str, names: Sequence[str], rows: NDArray[np.intp]) -> Shares:
    """Return the features of some questions for every number of passages, stacked."""
    return np.vstack([cases.numbers(order, depth, names)[rows] for depth in DEPTHS])


def held_out(
    cases: Cases,
    order: str,
    names: Sequence[str],
    learner: Callable[[], Any],
    *,
    seed: int,
    rows: NDArray[np.intp] | None = None,
    depth: int = K,
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], Shares]]:
    """Yield for each fold its training rows, its held-out rows, and the predictions for these."""
    from sklearn.model_selection import StratifiedKFold

    rows = np.arange(len(cases.sets)) if rows is None else rows
    issue = cases.issue[order]
    shown = cases.numbers(order, depth, names)
    strata = [f"{cases.sets[row]} {issue[row]}" for row in rows]
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    for inside, outside in folds.split(rows, strata):
        train, test = rows[inside], rows[outside]
        fitted = learner().fit(
            stacked(cases, order, names, train), np.tile(issue[train], len(DEPTHS))
        )
        yield train, test, fitted.predict_proba(shown[test])[:, 1]


def scores(
    cases: Cases,
    order: str,
    names: Sequence[str],
    learner: Callable[[], Any],
    *,
    seed: int,
    rows: NDArray[np.intp] | None = None,
    depth: int = K,
) -> Shares:
    """Return each row's held-out probability, shape ``(len(rows),)``."""
    found = np.full(len(cases.sets), np.nan)
    for _, test, probabilities in held_out(
        cases, order, names, learner, seed=seed, rows=rows, depth=depth
    ):
        found[test] = probabilities
    return found if rows is None else found[rows]


def judge(cases: Cases, order: str, rule: Flags, *, repeats: int) -> Judged:
    """Cross-validate the calibrated predictor, including its threshold."""
    issue, names = cases.issue[order], terms_of(order)
    probabilities = np.zeros((repeats, len(issue)))
    flags = np.zeros((repeats, len(issue)), bool)
    for seed in range(repeats):
        for train, test, of_test in held_out(cases, order, names, logistic, seed=seed):
            inner = scores(cases, order, names, logistic, seed=seed, rows=train)
            wanted = max(RECALL, rule[train][issue[train]].mean())
            least = threshold_for(inner, issue[train], wanted)
            probabilities[seed, test] = of_test
            flags[seed, test] = of_test >= least
    return Judged(probabilities=probabilities, flags=flags)


def recall_of(flags: Flags, issue: Flags) -> float:
    """Return the share of the issues that are flagged; NaN if there are none."""
    return float(flags[issue].mean()) if issue.any() else math.nan


def of_set(cases: Cases, name: str) -> Flags:
    """Return which questions belong to a set."""
    return np.ones(len(cases.sets), bool) if name == "both" else cases.sets == name


def published(cases: Cases, order: str, depth: int) -> Flags:
    """Return the flags of the published rule for every question."""
    rule = Published()
    return np.array([rule(row).issue for row in cases.features[order, depth]])


def train(cases: Cases, order: str, judged: Judged, rule: Flags) -> Model:
    """Train the model on all questions, with the threshold from held-out predictions."""
    issue, names = cases.issue[order], terms_of(order)
    fitted = logistic().fit(
        stacked(cases, order, names, np.arange(len(issue))), np.tile(issue, len(DEPTHS))
    )
    wanted = max(RECALL, recall_of(rule, issue))
    least = [threshold_for(p, issue, wanted) for p in judged.probabilities]
    return model_of(fitted, names, float(np.mean(least)))


def reached(
    cases: Cases, order: str, model: Model, *, repeats: int, rows: Flags | None = None
) -> tuple[Reach, ...]:
    """Return the reach of a model's flag and of BriefContext at once, on held-out questions, for 8 and 16 passages.

    Args:
        cases: the questions.
        order: name of the order.
        model: has the threshold of the flag.
        repeats: repetitions of the folds.
        rows: questions that count, shape ``(n,)``; ``None``: all.
    """
    rows = np.ones(len(cases.sets), bool) if rows is None else rows
    issue = cases.issue[order]
    found: list[Reach] = []
    for depth in DEPTHS[:2]:
        said = np.array(
            [
                scores(cases, order, terms_of(order), logistic, seed=seed, depth=depth)
                for seed in range(repeats)
            ]
        )
        absent = cases.absent[order, depth]
        found += reach(said[:, rows], issue[rows], absent[rows], k=depth, threshold=model.threshold)
    return tuple(found)


def save(cases: Cases, models: Mapping[str, Model], reaches: Mapping[str, Sequence[Reach]]) -> None:
    """Write the models of all orders, with their reach, to the package."""
    from sklearn import __version__

    calibration = Calibration(
        models=models,
        trained={
            "questions": {name: int(of_set(cases, name).sum()) for name in SETS[:2]},
            "digest": cases.digest,
            "passages": list(DEPTHS),
            "pool": cases.pool,
            "embedder": cases.embedder,
            "recall": RECALL,
            "scikit-learn": __version__,
            "orders": {
                order: {
                    "questions": len(cases.sets),
                    "rate": round(float(cases.issue[order].mean()), 4),
                    "reach": [_rounded(one) for one in reaches[order]],
                }
                for order in models
            },
        },
    )
    path = Path(str(files("policies"))) / "models" / "preflight.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(write(calibration), encoding="utf-8")
    print(f"\nwritten: {path.name}, version {calibration.version}")


def _rounded(one: Reach) -> dict[str, Any]:
    """Return a reach with three decimals; its threshold stays, since it names the flag's row."""
    found = asdict(one)
    for name in ("share", "recall", "mendable"):
        found[name] = None if found[name] is None else round(found[name], 3)
    return found


def main(argv: list[str] | None = None) -> int:
    """Train one model an order and write them."""
    parser = argparse.ArgumentParser(prog="training.preflight", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    parser.add_argument(
        "--index", type=Path, default=INDEX, help="index of the pool; built when missing"
    )
    parser.add_argument("--repeats", type=int, default=10, help="repetitions of the five folds")
    parser.add_argument("--modes", action="store_true", help="leave out the pruner's order")
    given = parser.parse_args(argv)
    cases = anyio.run(partial(gather, given.data, given.index, reranked=not given.modes))
    models, reaches = {}, {}
    for order in cases.issue:
        rule = published(cases, order, K)
        judged = judge(cases, order, rule, repeats=given.repeats)
        models[order] = train(cases, order, judged, rule)
        reaches[order] = reached(cases, order, models[order], repeats=given.repeats)
    save(cases, models, reaches)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
