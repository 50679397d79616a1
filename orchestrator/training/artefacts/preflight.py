"""Trains the calibrated preflight predictor and writes ``policies/models/preflight.json``.

``python -m orchestrator.training.artefacts.preflight [--data DIR] [--index DIR] [--repeats N]``. Questions of
PubMedQA and claims of SciFact over the 44,581 abstracts of the pool. A question has the issue when no key document
is among the first three shown (BriefContext, section 5.3). The threshold is chosen on held-out questions: five folds,
repeated with other folds. A question is in one fold with all of its numbers of passages. Figures of the model:
``python -m evals.preflight`` and ``policies/models/README.md``.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import numpy as np
from numpy.typing import NDArray

from orchestrator.training.artefacts.gold import DATA, WORK
from orchestrator.training.artefacts.preflight_cases import DEPTHS, Cases, gather
from policies.preflight import ORDERS, Calibrated, Model, Published, Term, write
from posology.index.schema import FORMAT, SPLITTER

Flags: TypeAlias = "NDArray[np.bool_]"
Shares: TypeAlias = "NDArray[np.float64]"

#: Default folder of the pool's index; built when missing.
INDEX = WORK / f"pool-vectors-{FORMAT}-{SPLITTER}"
#: Features of the model: few enough that a thousand questions teach their weights.
TERMS = (
    "beyond",
    "iou_3",
    "dense_gap_2",
    "dense_gap_3",
    "dense_gap_4",
    "dense_gap_mean",
    "passages",
)
#: Recall that the threshold is chosen for, unless the published rule's own is higher.
RECALL = 0.92
#: Number of passages that predictors are judged at.
K = 16
SETS = ("PubMedQA", "SciFact", "both")
_FOLDS = 5
_INVERSE_PENALTY = 0.1


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Judged:
    """Held-out predictions: each question's from the fold that did not train on it."""

    #: probabilities and flags, shape ``(repeats, n)`` each
    probabilities: Shares
    flags: Flags


def logistic() -> Any:
    """Return the predictor's learner; unweighted, so that its probabilities are calibrated."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(C=_INVERSE_PENALTY, max_iter=2000))


def threshold_for(probabilities: Shares, issue: Flags, recall: float) -> float:
    """Return the largest threshold that flags this share of the issues."""
    of_issues = np.sort(probabilities[issue])[::-1]
    return float(of_issues[math.ceil(recall * len(of_issues) - 1e-9) - 1])


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
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], Shares]]:
    """Yield for each fold its training rows, its held-out rows, and the predictions for these."""
    from sklearn.model_selection import StratifiedKFold

    rows = np.arange(len(cases.sets)) if rows is None else rows
    issue = cases.issue[order]
    shown = cases.numbers(order, K, names)
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
) -> Shares:
    """Return each row's held-out probability, shape ``(len(rows),)``."""
    found = np.full(len(cases.sets), np.nan)
    for _, test, probabilities in held_out(cases, order, names, learner, seed=seed, rows=rows):
        found[test] = probabilities
    return found if rows is None else found[rows]


def judge(cases: Cases, order: str, rule: Flags, *, repeats: int) -> Judged:
    """Cross-validate the calibrated predictor, including its threshold."""
    issue = cases.issue[order]
    probabilities = np.zeros((repeats, len(issue)))
    flags = np.zeros((repeats, len(issue)), bool)
    for seed in range(repeats):
        for train, test, of_test in held_out(cases, order, TERMS, logistic, seed=seed):
            inner = scores(cases, order, TERMS, logistic, seed=seed, rows=train)
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
    issue = cases.issue[order]
    fitted = logistic().fit(
        stacked(cases, order, TERMS, np.arange(len(issue))), np.tile(issue, len(DEPTHS))
    )
    scaler, regression = fitted[0], fitted[1]
    wanted = max(RECALL, recall_of(rule, issue))
    least = [threshold_for(p, issue, wanted) for p in judged.probabilities]
    return Model(
        intercept=float(regression.intercept_[0]),
        threshold=float(np.mean(least)),
        terms=tuple(
            Term(feature=name, weight=float(weight), mean=float(mean), scale=float(scale))
            for name, weight, mean, scale in zip(
                TERMS, regression.coef_[0], scaler.mean_, scaler.scale_, strict=True
            )
        ),
    )


def save(cases: Cases, models: dict[str, Model]) -> None:
    """Write the models of :data:`ORDERS` to the package."""
    from sklearn import __version__

    predictor = Calibrated(
        models={order: models[order] for order in ORDERS},
        trained={
            "questions": {name: int(of_set(cases, name).sum()) for name in SETS[:2]},
            "digest": cases.digest,
            "passages": list(DEPTHS),
            "pool": cases.pool,
            "embedder": cases.embedder,
            "recall": RECALL,
            "scikit-learn": __version__,
        },
    )
    path = Path(str(files("policies"))) / "models" / "preflight.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(write(predictor), encoding="utf-8")
    print(f"\nwritten: {path.name}, version {predictor.version}")


def main(argv: list[str] | None = None) -> int:
    """Train one model an order and write them."""
    parser = argparse.ArgumentParser(
        prog="orchestrator.training.artefacts.preflight", description=__doc__
    )
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    parser.add_argument(
        "--index", type=Path, default=INDEX, help="index of the pool; built when missing"
    )
    parser.add_argument("--repeats", type=int, default=10, help="repetitions of the five folds")
    given = parser.parse_args(argv)
    cases = anyio.run(partial(gather, given.data, given.index))
    models = {}
    for order in ORDERS:
        rule = published(cases, order, K)
        models[order] = train(cases, order, judge(cases, order, rule, repeats=given.repeats), rule)
    save(cases, models)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
