"""Learns the probability that the key passage is beyond the first places, and measures what acting on it reaches.

A case is the retrieval of one question with one number of passages. With gold passages, the issue is BriefContext's
(section 5.3): none is among the first three. Without, the first passage of a *held* ranking stands for the key passage.
The model sees no feature of that ranking, and its intercept is shifted to an expected rate of issues (Saerens, Latinne
and Decaestecker, *Adjusting the outputs of a classifier to new a priori probabilities*, 2002, equation 4).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from orchestrator.training.calibration.forms import Reach
from policies.calibration import Model, Term
from policies.preflight_features import PREFIX, SPOTLIGHT
from posology.errors import InputError
from posology.types import Retrieval

Flags: TypeAlias = "NDArray[np.bool_]"
Shares: TypeAlias = "NDArray[np.float64]"

#: Features of the model: few enough that a thousand questions teach their weights
TERMS = (
    "beyond",
    "iou_3",
    "dense_gap_2",
    "dense_gap_3",
    "dense_gap_4",
    "dense_gap_mean",
    "passages",
)
#: more features of re-ranked orders
RERANKED_TERMS = ("reranked_beyond", "shown_iou_3", "shown_first_in_dense", "shown_first_in_corpus")
#: share of the issues that the threshold flags, unless the published rule flags more
RECALL = 0.92
#: fewest questions with the issue, and fewest without, to learn from
LEAST = 10
#: expected share of issues where no question has gold passages: PubMedQA and SciFact, fused order
#: (``policies/models/README.md``)
ISSUE_RATE = 0.09
#: least probabilities for BriefContext at once whose reach is measured
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5)
_FOLDS = 5
_INVERSE_PENALTY = 0.1
#: features of cases without gold, with the rankings that they are computed from
_AGREEMENT: Mapping[str, frozenset[str]] = {
    "iou_3": frozenset({"dense", "rerank"}),
    "overlap": frozenset({"dense", "rerank"}),
    "corpus_iou_3": frozenset({"dense", "bm25"}),
    "corpus_overlap": frozenset({"dense", "bm25"}),
    "shown_iou_3": frozenset({"fused"}),
    "shown_first_in_dense": frozenset({"dense"}),
    "shown_first_in_corpus": frozenset({"bm25"}),
    "dense_gap_2": frozenset({"dense"}),
    "dense_gap_4": frozenset({"dense"}),
    "dense_gap_mean": frozenset({"dense"}),
    "corpus_gap_2": frozenset({"bm25"}),
    "corpus_gap_4": frozenset({"bm25"}),
    "rerank_gap_2": frozenset({"rerank"}),
    "rerank_gap_4": frozenset({"rerank"}),
    "reranked_lead": frozenset(),
    "passages": frozenset(),
}
_HELD: Mapping[str, str] = {
    "dense": "bm25",
    "bm25>dense": "bm25",
    "bm25": "dense",
    "dense>bm25": "dense",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One question's features with one number of passages."""

    #: identity of the question; all of its cases are in one fold
    question: str
    features: Mapping[str, Any]
    #: whether the key passage is not among the first three
    issue: bool
    #: whether no gold passage was retrieved at all; ``None``: the question has none
    absent: bool | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Learned:
    """A model of one order, and its reach."""

    model: Model
    questions: int
    #: mean share of issues, 0 to 1
    rate: float
    #: ranking that stood for gold; ``None``: questions had gold
    held: str | None
    #: empty without gold
    reach: tuple[Reach, ...]


def held_ranking(order: str) -> str:
    """Return the ranking that stands for gold in an order: one that the order does not come from, if there is one.

    The fused order comes from both methods; BM25 among the dense passages, the paper's second vote, is held. A
    re-ranked order is compared with the fused one.
    """
    if " of " in order:
        return "fused"
    return _HELD.get(order, "rerank")


def disagrees(retrieval: Retrieval, held: str) -> bool:
    """Return whether the first passage of a held ranking is not among the first three shown."""
    rankings = {
        "dense": retrieval.dense,
        "bm25": retrieval.bm25,
        "rerank": retrieval.bm25_rerank,
        "fused": retrieval.fused,
    }
    first = rankings[held].ids[:1]
    shown = {one.passage.id for one in retrieval.passages[:SPOTLIGHT]}
    return bool(first) and first[0] not in shown


def terms_of(order: str, held: str | None = None) -> tuple[str, ...]:
    """Return the features of a model.

    Args:
        order: name of the order of showing.
        held: ranking that stands for gold, which no feature may come from; ``None``: gold is known.
    """
    reranked = " of " in order
    if held is None:
        return TERMS + RERANKED_TERMS if reranked else TERMS
    return tuple(
        name
        for name, used in _AGREEMENT.items()
        if held not in used and (reranked or not name.startswith(("shown", "reranked")))
    )


def logistic() -> Any:
    """Return the learner; unweighted, so that its probabilities are calibrated."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(C=_INVERSE_PENALTY, max_iter=2000))


def model_of(fitted: Any, names: Sequence[str], threshold: float) -> Model:
    """Return a fitted learner as a model."""
    scaler, regression = fitted[0], fitted[1]
    return Model(
        intercept=float(regression.intercept_[0]),
        threshold=threshold,
        terms=tuple(
            Term(feature=name, weight=float(weight), mean=float(mean), scale=float(scale))
            for name, weight, mean, scale in zip(
                names, regression.coef_[0], scaler.mean_, scaler.scale_, strict=True
            )
        ),
    )


def threshold_for(probabilities: Shares, issue: Flags, recall: float) -> float:
    """Return the largest threshold that flags this share of the issues."""
    of_issues = np.sort(probabilities[issue])[::-1]
    return float(of_issues[math.ceil(recall * len(of_issues) - 1e-9) - 1])


def reach(
    probabilities: Shares, issue: Flags, absent: Flags, *, k: int, threshold: float
) -> tuple[Reach, ...]:
    """Return the reach at the threshold and at :data:`LEVELS`.

    Args:
        probabilities: held-out probabilities, shape ``(n,)``, or ``(repeats, n)``: the mean over repeats counts.
        issue: whether each question has the issue, shape ``(n,)``.
        absent: whether no gold passage was retrieved, shape ``(n,)``.
        k: number of passages.
        threshold: that of the flag.
    """
    said = np.atleast_2d(probabilities)
    mends = issue & ~absent
    return tuple(
        Reach(
            k=k,
            least=least,
            questions=len(issue),
            issues=int(issue.sum()),
            share=float((said >= least).mean()),
            recall=float((said[:, issue] >= least).mean()),
            mendable=float((said[:, mends] >= least).mean()) if mends.any() else None,
        )
        for least in sorted({threshold, *LEVELS})
    )


def learn(cases: Sequence[Case], order: str, held: str | None, rate: float) -> Learned:
    """Learn the model of an order.

    Args:
        cases: one for each question and number of passages.
        order: name of the order of showing.
        held: ranking that stood for gold; ``None``: ``issue`` is of gold passages.
        rate: expected share of issues, 0 to 1; used without gold alone.

    Raises:
        InputError: too few questions have the issue, or do not have it.
    """
    names = terms_of(order, held)
    numbers = np.array([[one.features[PREFIX + name] for name in names] for one in cases], float)
    issue = np.array([one.issue for one in cases])
    questions = np.array([one.question for one in cases])
    for wanted, what in ((True, "have"), (False, "do not have")):
        found = len({one.question for one in cases if one.issue is wanted})
        if found < LEAST:
            raise InputError(
                f"{found} of {len(set(questions))} questions {what} their key passage beyond the first {SPOTLIGHT}; at "
                f"least {LEAST} are needed. Add questions."
            )
    probabilities = np.zeros(len(cases))
    for train, test in _folds(questions, issue):
        fitted = logistic().fit(numbers[train], issue[train])
        probabilities[test] = fitted.predict_proba(numbers[test])[:, 1]
    threshold = threshold_for(probabilities, issue, RECALL)
    model = model_of(logistic().fit(numbers, issue), names, threshold)
    if held is not None:
        model = _shifted(model, float(issue.mean()), rate)
    return Learned(
        model=model,
        questions=len(set(questions)),
        rate=float(issue.mean()),
        held=held,
        reach=() if held is not None else tuple(_reaches(cases, probabilities, threshold)),
    )


def _reaches(cases: Sequence[Case], probabilities: Shares, threshold: float) -> Iterator[Reach]:
    passages = np.array([one.features[PREFIX + "passages"] for one in cases])
    issue = np.array([one.issue for one in cases])
    absent = np.array([bool(one.absent) for one in cases])
    for k in sorted(set(passages.astype(int).tolist())):
        of = passages == k
        if issue[of].any():
            yield from reach(probabilities[of], issue[of], absent[of], k=k, threshold=threshold)


def _folds(
    questions: NDArray[np.str_], issue: Flags
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield training and held-out rows; a question is in one fold with all of its cases."""
    from sklearn.model_selection import StratifiedGroupKFold

    yield from StratifiedGroupKFold(_FOLDS, shuffle=True, random_state=0).split(
        issue, issue, questions
    )


def _shifted(model: Model, rate: float, expected: float) -> Model:
    """Return the model with its probabilities shifted from one share of issues to another."""
    shift = math.log(expected / (1 - expected)) - math.log(rate / (1 - rate))
    odds = model.threshold / (1 - model.threshold) * math.exp(shift)
    return replace(model, intercept=model.intercept + shift, threshold=odds / (1 + odds))
