"""Accuracies of BriefContext's multiple-choice questions, as a simulated model's answers translate to them."""

from __future__ import annotations

from collections.abc import Mapping

from evals.papers.suite import Answered, Asked
from orchestrator.evaluation.simulation.profiles import PUBLISHED, read
from posology.types import Answer

MIXTRAL, GPT = "Mixtral-7x8b", "GPT-3.5-turbo-0125"
#: the model whose curve a simulated profile follows
FOLLOWS: Mapping[str, str] = {
    "strong": MIXTRAL,
    "weak": "longchat-13b-16k",
    "over-refusing": GPT,
    "over-confident": GPT,
    "immune": MIXTRAL,
}
#: profiles that are put beside a model's figures; ``immune`` has its reading, but loses nothing
BESIDE: Mapping[str, frozenset[str]] = {
    MIXTRAL: frozenset({"strong"}),
    GPT: frozenset({"over-refusing", "over-confident"}),
}
_MODELS = {row["model"]: row for row in read(PUBLISHED)["positions"]}


def rests_on_key(asked: Asked, answered: Answered) -> bool:
    """Return whether an answer cites a passage that answers the question."""
    outcome = answered.outcome
    return isinstance(outcome, Answer) and any(
        one.passage_id in asked.gold for one in outcome.citations
    )


def accuracy(asked: Asked, answered: Answered, verdict: str) -> float | None:
    """Return whether the verdict is right, 0 or 1; of a simulated model, how probably a multiple-choice question is right.

    The published curves mix a model's accuracy without any passage and that with the key passage alone. So does this: an
    answer that rests on the key passage counts as the one, any other outcome as the other. ``None``: the reader gives no
    verdicts.
    """
    if not answered.verdicts:
        return None
    if answered.profile is None:
        outcome = answered.outcome
        return float(isinstance(outcome, Answer) and outcome.choice == verdict)
    model = _MODELS[FOLLOWS[answered.profile]]
    percent: float = model["alone" if rests_on_key(asked, answered) else "without"]
    return percent / 100
