"""BriefContext, supplementary table 1 and figure 2: the key document at five places of 8 and 16."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from evals.papers.briefcontext.resolution import CONFLICTS, conflict, versus
from evals.papers.briefcontext.scale import BESIDE, GPT, MIXTRAL, accuracy, rests_on_key
from evals.papers.literature import FILES, Case, pubmedqa, retrieval
from evals.papers.report import FITTED, PREDICTED
from evals.papers.rows import Result
from evals.papers.suite import Answered, Asked, Given, Item, Published, Suite, Values
from orchestrator.evaluation.simulation.profiles import PUBLISHED, read
from posology.types import Answer, Dose, Passage, Refusal, Sentence, Task

RAG, PARTS = "RAG", "BriefContext"
DOSES = {RAG: Dose(strategy="direct"), PARTS: Dose(strategy="briefcontext")}
DEPTHS = (8, 16)
PLACES = (0, 25, 50, 75, 100)
#: percent, by model and number of documents, in the order of :data:`PLACES`
_PARTED = {
    (MIXTRAL, 8): (57.14, 56.20, 57.14, 58.10, 59.05),
    (MIXTRAL, 16): (62.86, 59.05, 57.14, 60.00, 60.95),
    (GPT, 8): (56.59, 59.05, 60.95, 60.00, 60.95),
    (GPT, 16): (59.05, 57.14, 59.05, 59.05, 60.00),
}


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Shown:
    """A question with the passages of one arm, in their order."""

    case: Case
    passages: tuple[Passage, ...]
    dose: Dose

    @property
    def asked(self) -> Asked:
        """Return it as readers are asked; partitions of half of the passages answer, as in the authors' run."""
        key = self.case.key
        return Asked(
            task=Task(
                query=self.case.query,
                retrieval=retrieval(self.case.query, self.passages),
                model="",
                max_tokens=None,
                partitions="answer",
            ),
            dose=self.dose,
            partition_size=max(1, len(self.passages) // 2),
            gold={key.id: (Sentence(start=0, end=len(key.text)),)},
            answers={key.id: self.case.verdict},
        )


def placed(case: Case, others: Sequence[Passage], k: int, percent: int) -> tuple[Passage, ...]:
    """Return k passages with the key passage at a place, percent of the way from the first to the last."""
    shown = list(others[: k - 1])
    shown.insert(round(percent / 100 * len(shown)), case.key)
    return tuple(shown)


def arm(method: str, k: int, percent: int) -> str:
    """Return the name of an arm."""
    return f"{method}, k {k}, key at {percent} %"


def _settings() -> dict[str, tuple[str, str]]:
    """Return the arms of both methods by setting."""
    return {
        f"k {k}, key at {percent} %": (arm(PARTS, k, percent), arm(RAG, k, percent))
        for k in DEPTHS
        for percent in PLACES
    }


def _published() -> Iterator[Published]:
    shown = {row["model"]: iter(row["points"]) for row in read(PUBLISHED)["positions"]}
    for model in (MIXTRAL, GPT):
        profiles = BESIDE[model]
        best = next(r["alone"] for r in read(PUBLISHED)["positions"] if r["model"] == model)
        for k in DEPTHS:
            for percent, parted in zip(PLACES, _PARTED[model, k], strict=True):
                direct: float = next(shown[model])["accuracy"]
                for method, value in ((RAG, direct), (PARTS, parted)):
                    # a model's highest accuracy stands for that with the key passage alone
                    known = method == RAG or value == best
                    yield Published(
                        arm=arm(method, k, percent),
                        measure="accuracy",
                        value=value / 100,
                        of=model,
                        source="table S1",
                        profiles=profiles,
                        fitted=profiles if known else frozenset(),
                    )


class Position(Suite):
    """The key document at five places of the context, by RAG and by BriefContext."""

    name = "briefcontext-position"
    title = "the key document at 0, 25, 50, 75 and 100 % of 8 and 16 documents"
    paper, place = "BriefContext", "table S1 and figure 2"
    files = FILES
    questions = 105
    measures: ClassVar[Mapping[str, str]] = {
        "accuracy": "share of right verdicts; of a simulated model on the paper's scale: its model's published accuracy "
        "without passages, and at best, mixed as often as answers rest on the key document",
        "right": "share of right verdicts as they are given, refusals wrong",
        **CONFLICTS,
        "key": "share of questions whose answer cites the key document",
        "refused": "share of questions that are refused",
    }
    published = tuple(_published())
    differences: Sequence[str] = (
        "Documents are the abstracts nearest to the question among 44,581 by all-MiniLM-L6-v2, not among 23.9 million by MedCPT.",
        "Questions are drawn from 500 of PubMedQA; which 105 the paper drew is not published.",
        "Prompts are ours, with quotes that are checked; `--prompts` of `posology ask` takes others.",
    )

    def items(self, given: Given) -> list[Item]:
        """Return every question at every place, by both methods."""
        return [
            Item(
                question=case.id,
                arm=arm(method, k, percent),
                content=Shown(
                    case=case, passages=placed(case, case.near, k, percent), dose=DOSES[method]
                ),
            )
            for case in pubmedqa(given, max(DEPTHS))
            for k in DEPTHS
            for percent in PLACES
            for method in DOSES
        ]

    def tables(self, rows: Sequence[Result]) -> Iterator[str]:
        """Yield table S2: conflicts, how they were resolved, and who wins."""
        basis = f"conflicts and right resolutions were *{FITTED}* to table S2; wins, ties and losses are *{PREDICTED}*"
        return versus(rows, _settings(), basis)

    def asked(self, item: Item) -> Asked:
        """Return an item as a reader is asked."""
        shown: Shown = item.content
        return shown.asked

    def graded(self, item: Item, asked: Asked, answered: Answered) -> Values:
        """Return the measures of an answer."""
        outcome = answered.outcome
        right = isinstance(outcome, Answer) and outcome.choice == item.content.case.verdict
        return {
            "accuracy": accuracy(asked, answered, item.content.case.verdict),
            "right": float(right) if answered.verdicts else None,
            **conflict(answered, right=right),
            "key": float(rests_on_key(asked, answered)),
            "refused": float(isinstance(outcome, Refusal)),
        }
