"""Measures how well preflight predicts that the key document is beyond the third place.

Usage: ``python -m evals.policy.preflight [--data PATH] [--index DIR] [--repeats N] [--write]``.

The questions of PubMedQA and the claims of SciFact, over the 44,581 abstracts of the pool. The issue is the
paper's (BriefContext, section 5.3): no key document among the first three shown. Six orders of showing:
dense, which the paper evaluates; fused, which is the product's own; BM25; two of two stages; the fused one re-ranked
by the pruner.

The calibrated predictor is judged on questions that it was not trained on: five folds, repeated with other
folds; its threshold is chosen within the training folds, by folds of theirs. A question is in one fold with
all of its numbers of passages. Intervals are the 2.5th and 97.5th percentiles over repetitions and over
resampled questions. *Reach* is the recall of the action, BriefContext at once, beside that of the flag. Then come
models that learned without gold (``posology policy calibrate``), and questions of another kind, by the model of all
these. ``--write`` rewrites the packaged models with those of all questions.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import numpy as np

from evals.pooled import open_pool
from orchestrator.training.calibration.forms import Reach
from orchestrator.training.calibration.learning import (
    ISSUE_RATE,
    RECALL,
    Case,
    Flags,
    Shares,
    held_ranking,
    learn,
    logistic,
    terms_of,
    threshold_for,
)
from policies.calibration import Calibration, Model
from policies.preflight import PREFIX, SPOTLIGHT, Calibrated, Published, observe
from policies.preflight_features import WEIGHTS
from posology.types import Mode
from training.preflight import (
    INDEX,
    SETS,
    Judged,
    K,
    judge,
    of_set,
    published,
    reached,
    recall_of,
    save,
    scores,
    train,
)
from training.preflight_cases import DEPTHS, Cases, gather, likeliest_weights

PAPER = "paper (MedCPT, all of PubMed)  n  1118  TP 426  FP 423  FN  34  TN 235  precision .5018  recall .9261  F1 .6509"
_RESAMPLED = 200
_GOAL = 0.8
_ELSEWHERE = 400
_BINS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)


def boosted() -> Any:
    """A learner that finds thresholds and interactions, for comparison only."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=80, max_depth=3, learning_rate=0.06)


def confusion(flags: Flags, issue: Flags) -> str:
    """Counts and ratios in a line; with repeats, their means."""
    flags = np.atleast_2d(flags)
    tp, fp = (flags & issue).sum(1).mean(), (flags & ~issue).sum(1).mean()
    fn, tn = (~flags & issue).sum(1).mean(), (~flags & ~issue).sum(1).mean()
    return (
        f"n {issue.size:5}  TP {tp:5.1f}  FP {fp:5.1f}  FN {fn:5.1f}  TN {tn:5.1f}  "
        f"precision {tp / max(tp + fp, 1):.4f}  recall {tp / max(tp + fn, 1):.4f}  "
        f"F1 {2 * tp / max(2 * tp + fp + fn, 1):.4f}  flagged {(tp + fp) / issue.size:.3f}"
    )


def interval(flags: Flags, issue: Flags, measure: Callable[[Flags, Flags], float]) -> str:
    """Of a measure of flags and issues, over repeats and resampled questions."""
    rng = np.random.default_rng(0)
    flags = np.atleast_2d(flags)
    found = []
    for repeat in flags:
        for _ in range(_RESAMPLED):
            rows = rng.integers(0, issue.size, issue.size)
            found.append(measure(repeat[rows], issue[rows]))
    low, high = np.nanpercentile(found, [2.5, 97.5])
    return f"{low:.3f}–{high:.3f}"


def flagged_of(flags: Flags, issue: Flags) -> float:
    """Share of all questions that are flagged."""
    return float(flags.mean()) if issue.size else math.nan


def report(cases: Cases, order: str, judged: Judged, rule: Flags) -> None:
    """The confusion matrices and what they are held against, at :data:`K` passages."""
    issue, absent = cases.issue[order], cases.absent[order, K]
    print(f"\n{order} order, k = {K}: the issue is no key document among the first {SPOTLIGHT}")
    print(f"  {PAPER}")
    for name in SETS:
        of = of_set(cases, name)
        y, flags = issue[of], judged.flags[:, of]
        reachable = of & ~absent
        print(f"  {name}: prevalence {y.mean():.3f}; not retrieved at all {absent[of].mean():.3f}")
        print(f"    published   {confusion(rule[of], y)}")
        print(
            f"      recall {interval(rule[of], y, recall_of)}, flagged {interval(rule[of], y, flagged_of)}"
        )
        print(f"    calibrated  {confusion(flags, y)}")
        print(
            f"      recall {interval(flags, y, recall_of)}, flagged {interval(flags, y, flagged_of)}"
        )
        print(
            "      of the issues whose key document was retrieved, and can be mended "
            f"({issue[reachable].sum()}): recall published {recall_of(rule[reachable], issue[reachable]):.3f}, "
            f"calibrated {judged.flags[:, reachable & issue].mean():.3f}"
        )


def best(cases: Cases, order: str, judged: Judged, rule: Flags, *, repeats: int) -> None:
    """The goal: half of the rule's flags at the recall; with each set's own threshold, found afterwards."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    issue = cases.issue[order]
    names = [
        name.removeprefix(PREFIX)
        for name, value in cases.features[order, K][0].items()
        if not isinstance(value, str)
    ]

    def averaged(learner: Callable[[], Any]) -> Shares:
        found = [scores(cases, order, names, learner, seed=seed) for seed in range(repeats)]
        return np.asarray(np.mean(found, axis=0), np.float64)

    learners: dict[str, Shares] = {
        "published IoU": -cases.numbers(order, K, ["iou_3"])[:, 0],
        "beyond alone": cases.numbers(order, K, ["beyond"])[:, 0],
        "calibrated": judged.probabilities.mean(axis=0),
        "all features": averaged(logistic),
        "boosting": averaged(boosted),
    }
    print(f"\n{order} order: the best that scores allow (threshold chosen on what is measured)")
    for name in SETS:
        of = of_set(cases, name)
        y = issue[of]
        wanted = max(RECALL, recall_of(rule[of], y))
        half = rule[of].mean() / 2
        print(f"  {name}: flags at recall {wanted:.3f}; half of the rule's flags: {half:.3f}")
        for learner, score in learners.items():
            flagged = (score[of] >= threshold_for(score[of], y, wanted)).mean()
            print(
                f"    {learner:14} {flagged:.3f} {'met' if flagged <= half else 'missed':6}"
                f"  ROC area {roc_auc_score(y, score[of]):.3f}"
                f"  precision–recall area {average_precision_score(y, score[of]):.3f}"
            )


def calibration(cases: Cases, order: str, judged: Judged) -> None:
    """Whether probabilities are what they say."""
    issue = cases.issue[order]
    p = judged.probabilities.mean(axis=0)
    print(f"\n{order} order: probabilities (Brier {np.mean((p - issue) ** 2):.4f}, always the "
          f"prevalence {issue.mean() * (1 - issue.mean()):.4f})")  # fmt: skip
    for low, high in pairwise(_BINS):
        inside = (p >= low) & ((p < high) | (high == 1))
        if inside.any():
            print(f"    {low:.2f}–{high:.2f}  n {inside.sum():4}  "
                  f"said {p[inside].mean():.3f}  was {issue[inside].mean():.3f}")  # fmt: skip


def depths(cases: Cases, order: str, rule: dict[int, Flags], model: Model) -> None:
    """Other numbers of passages, by the model that was trained on all questions."""
    print(f"\n{order} order, other numbers of passages (a model that saw these questions)")
    issue = cases.issue[order]
    for depth in DEPTHS:
        rows = cases.features[order, depth]
        flags = np.array([model.probability(row) >= model.threshold for row in rows])
        print(f"    k {depth:3}  published {confusion(rule[depth], issue)}")
        print(f"           calibrated {confusion(flags, issue)}")


def reach_rows(
    cases: Cases, order: str, model: Model, rule: dict[int, Flags], *, repeats: int
) -> tuple[Reach, ...]:
    """Print and return the reach of the flag and of BriefContext at once, beside half of the rule's share.

    The goal: .80 of the mendable issues at no more than half of the questions that the rule gives to BriefContext.
    """
    print(f"\n{order} order: reach of BriefContext at once, by its least probability (held out)")
    for name in SETS:
        of = of_set(cases, name)
        found = reached(cases, order, model, repeats=repeats, rows=of)
        for depth in sorted({one.k for one in found}):
            issue, flags = cases.issue[order], rule[depth]
            mends = of & issue & ~cases.absent[order, depth]
            print(
                f"  {name}, k = {depth}: issues {issue[of].sum()}, mendable {mends.sum()}; published rule: share "
                f"{flags[of].mean():.3f}, recall {recall_of(flags[of], issue[of]):.3f}, of mendable {flags[mends].mean():.3f}"
            )
            for one in found:
                if one.k == depth:
                    kind = "flag" if one.least == model.threshold else "    "
                    print(
                        f"    {kind} p ≥ {one.least:.3f}  share {one.share:.3f}  recall {one.recall:.3f}  "
                        f"of mendable {one.mendable or math.nan:.3f}"
                    )
            _goal(cases, order, depth, of, flags)
    return reached(cases, order, model, repeats=repeats)


def _goal(cases: Cases, order: str, depth: int, of: Flags, rule: Flags) -> None:
    """Print the least share that reaches .80 of the mendable issues, the threshold found on what is measured."""
    said = scores(cases, order, terms_of(order), logistic, seed=0, depth=depth)
    mends = cases.issue[order] & ~cases.absent[order, depth] & of
    least = threshold_for(said, mends, _GOAL)
    share, half = (said[of] >= least).mean(), rule[of].mean() / 2
    met = "met" if share <= half else "missed"
    print(
        f"    {_GOAL:.2f} of mendable at p ≥ {least:.3f}: share {share:.3f}, half of the rule's {half:.3f}: {met}"
    )


def without_gold(cases: Cases, order: str) -> None:
    """Print how well a model that learned without gold finds the issues, beside one that learned with it."""
    from sklearn.metrics import roc_auc_score

    held, issue = held_ranking(order), cases.issue[order]
    asked = [
        Case(
            question=str(row), features=features, issue=bool(cases.held[order, K][row]), absent=None
        )
        for row, features in enumerate(cases.features[order, K])
    ]
    learned = learn(asked, order, held, ISSUE_RATE)
    said = np.array([learned.model.probability(one.features) for one in asked])
    gold = scores(cases, order, terms_of(order), logistic, seed=0)
    flags = said >= learned.model.threshold
    print(
        f"\n{order} order, learned without gold, {held} held, k = {K}: the held first passage is beyond place "
        f"{SPOTLIGHT} in {learned.rate:.3f}\n"
        f"    ROC area {roc_auc_score(issue, said):.3f} (with gold {roc_auc_score(issue, gold):.3f}, "
        f"IoU alone {roc_auc_score(issue, -cases.numbers(order, K, ['iou_3'])[:, 0]):.3f}); mean probability "
        f"{said.mean():.3f}, issues {issue.mean():.3f}\n    flag {confusion(flags, issue)}\n"
        f"    at once, p ≥ 0.5: share {(said >= 0.5).mean():.3f}, recall {recall_of(said >= 0.5, issue):.3f}"
    )


def weights(cases: Cases) -> None:
    """What the built-in weights of the log odds are rounded from."""
    print(f"likeliest weights of {', '.join(WEIGHTS)}; built in: {tuple(WEIGHTS.values())}")
    for name in SETS:
        for depth in DEPTHS:
            found = likeliest_weights(cases, depth, of_set(cases, name))
            print(f"    {name:8}  k {depth:2}  {found.round(2).tolist()}")


def main(argv: list[str] | None = None) -> int:
    """Print every table; write the model where that is asked for."""
    parser = argparse.ArgumentParser(prog="evals.policy.preflight", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument(
        "--index", type=Path, default=INDEX, help="index of the pool; built when missing"
    )
    parser.add_argument("--repeats", type=int, default=10, help="repetitions of the five folds")
    parser.add_argument("--write", action="store_true", help="rewrite the packaged models")
    parser.add_argument("--modes", action="store_true", help="leave out the pruner's order")
    given = parser.parse_args(argv)
    cases = anyio.run(partial(gather, given.data, given.index, reranked=not given.modes))
    weights(cases)
    models, reaches = {}, {}
    for order in cases.issue:
        rule = {depth: published(cases, order, depth) for depth in DEPTHS}
        judged = judge(cases, order, rule[K], repeats=given.repeats)
        models[order] = train(cases, order, judged, rule[K])
        report(cases, order, judged, rule[K])
        best(cases, order, judged, rule[K], repeats=min(given.repeats, 3))
        calibration(cases, order, judged)
        depths(cases, order, rule, models[order])
        reaches[order] = reach_rows(cases, order, models[order], rule, repeats=given.repeats)
        without_gold(cases, order)
    if given.write:
        save(cases, models, reaches)
    anyio.run(transfer, given.data, models)
    return 0


async def elsewhere(data: Path, n: int, depth: int, order: Mode) -> tuple[list[bool], list[Any]]:
    """Questions of another kind, SQuAD's over its pooled paragraphs: the issue and the features of each."""
    pool = open_pool(data)
    issue, features = [], []
    for question in pool.sample("test", n):
        retrieval = await pool.retrieve(question, depth, order)
        shown = [one.passage.id for one in retrieval.passages[:SPOTLIGHT]]
        issue.append(question.passage not in shown)
        features.append(observe(retrieval))
    return issue, features


async def transfer(data: Path, models: dict[str, Model]) -> None:
    """What becomes of both predictors on questions of another kind, in another index."""
    for order in ("dense", "fused"):
        asked, features = await elsewhere(data, _ELSEWHERE, K, order)
        issue = np.array(asked)
        calibrated = Calibrated(calibrations=(Calibration(models={order: models[order]}),))
        print(
            f"\n{order} order, {_ELSEWHERE} questions of SQuAD over its own 913 paragraphs, k = {K}"
        )
        for predictor in (Published(), calibrated):
            flags = np.array([predictor(row).issue for row in features])
            print(f"    {predictor.name:11} {confusion(flags, issue)}")
            print(f"      recall {interval(flags, issue, recall_of)}")


if __name__ == "__main__":
    raise SystemExit(main())
