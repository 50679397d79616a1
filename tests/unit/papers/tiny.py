"""A tiny suite: three questions, asked directly and in partitions."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import ClassVar

import anyio

from evals.papers.literature import retrieval
from evals.papers.rows import open_folder
from evals.papers.run import Payment, run
from evals.papers.suite import Answered, Asked, Given, Item, Published, Suite, Values
from posology.query import make_query
from posology.types import Answer, Dose, Passage, Sentence, Task

TEXT = "Aspirin lowered the risk of stroke in group {n}. The dose was {n} mg a day."
ARMS = {"direct": Dose(strategy="direct"), "parted": Dose(strategy="briefcontext")}


class Tiny(Suite):
    """Three questions over four passages."""

    name = "tiny"
    title = "a suite for tests"
    paper, place = "No paper", "table 0"
    files = ("data.txt",)
    questions = 3
    measures: ClassVar[Mapping[str, str]] = {"answered": "share of questions that are answered"}
    differences = ("It is no experiment.",)
    published = (
        Published(
            arm="direct", measure="answered", value=0.5, of="a model", source="table 0",
            profiles=frozenset({"strong"}), fitted=frozenset({"strong"}),
        ),
        Published(arm="parted", measure="answered", value=0.75, of="a model", source="table 0"),
    )  # fmt: skip

    def __init__(self) -> None:
        #: items that readers were asked, in order
        self.seen: list[str] = []

    def items(self, given: Given) -> list[Item]:
        return [
            Item(question=f"q{n}", arm=arm, content=n)
            for n in range(given.questions)
            for arm in ARMS
        ]

    def asked(self, item: Item) -> Asked:
        n: int = item.content
        query = make_query(f"Did aspirin lower the risk of stroke in group {n}?")
        passages = [Passage(id=f"p:{n}:{i}", text=TEXT.format(n=10 * n + i)) for i in range(4)]
        return Asked(
            task=Task(query=query, retrieval=retrieval(query, passages), model="", max_tokens=None),
            dose=ARMS[item.arm],
            partition_size=2,
            gold={passages[0].id: (Sentence(start=0, end=len(passages[0].text)),)},
        )

    def graded(self, item: Item, asked: Asked, answered: Answered) -> Values:
        _ = asked
        self.seen.append(f"{item.question} {item.arm}")
        return {"answered": float(isinstance(answered.outcome, Answer))}


def given_in(folder: Path, questions: int = 3) -> Given:
    (folder / "data.txt").write_text("data")
    return Given(data=folder, work=folder, questions=questions)


def run_in(
    folder: Path, suite: Suite, *readers: str, questions: int = 3, payment: Payment | None = None
) -> str:
    with open_folder(folder / "run") as opened:
        asked = partial(
            run, suite, given_in(folder, questions), readers, opened, payment or Payment()
        )
        return anyio.run(asked).text


if __name__ == "__main__":
    run_in(Path(sys.argv[1]), Tiny(), sys.argv[2], payment=Payment(cap=Decimal(1)))
