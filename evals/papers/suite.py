"""A suite: one experiment of a paper, with the paper's own figures.

A suite makes items, one for each question and arm, and measures each by itself, so that a run can be interrupted. An
item either needs no reader, or it is a task that :mod:`evals.papers.readers` answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from orchestrator.evaluation.simulation import Gold
from posology.types import Answer, Dose, Refusal, Task

if TYPE_CHECKING:
    from evals.papers.rows import Result

#: measures of one question in one arm; ``None``: the question has none, and is left out of the mean
Values = Mapping[str, float | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """A figure of a paper."""

    #: arm and measure of the suite that it belongs to
    arm: str
    measure: str
    value: float
    #: the paper's model, or what else it was measured with
    of: str
    #: table, figure or section
    source: str
    #: simulated profiles that follow this model; ``None``: it is put beside every reader
    profiles: frozenset[str] | None = None
    #: simulated profiles with a parameter that was fitted on this figure, so that coming near it shows nothing
    fitted: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Item:
    """A question in one arm."""

    #: unique in the suite
    question: str
    arm: str
    #: whatever else the suite needs to measure it
    content: Any = None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Asked:
    """A question as a reader is asked."""

    #: its model is the reader's
    task: Task
    dose: Dose
    #: passages a partition; ``None``: the strategy's default
    partition_size: int | None = None
    #: the spans that answer, by passage; only simulated models see them
    gold: Gold = field(default_factory=dict)
    #: short answer or verdict that a passage gives, by its id; only simulated models see them
    answers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Answered:
    """The outcome of a question, and what it took."""

    outcome: Answer | Refusal
    calls: int
    #: tokens of all calls, repairs included
    input_tokens: int
    output_tokens: int
    #: dollars; of simulated and offline readers, what gpt-4o-mini would have cost
    usd: float
    #: profile of the simulated model; ``None``: it was another reader
    profile: str | None = None
    #: whether its reader gives verdicts and short answers
    verdicts: bool = True

    @property
    def effort(self) -> dict[str, float | None]:
        """Return calls, tokens and dollars as measures."""
        tokens = float(self.input_tokens + self.output_tokens)
        return {"calls": float(self.calls), "tokens": tokens, "usd": self.usd}


def embed(texts: Sequence[str]) -> np.ndarray:
    """Return unit vectors by the packaged encoder, shape ``(len(texts), 384)``."""
    from posology.index.embedders import load

    vectors: np.ndarray = load().embed_queries(texts)
    return vectors


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """What a run was started with."""

    #: folder of the data sets
    data: Path
    #: folder of indices and vectors that are kept between runs
    work: Path
    #: most questions
    questions: int
    seed: int = 0
    #: only arms whose names contain this
    arms: str = ""
    #: returns the vectors of texts, of unit length
    embed: Callable[[Sequence[str]], np.ndarray] = embed


class Suite(ABC):
    """An experiment of a paper."""

    #: of the command
    name: str
    #: one sentence
    title: str
    #: short name of the paper, and the table or figure
    paper: str
    place: str
    #: files of the data folder
    files: tuple[str, ...]
    #: questions by default
    questions: int
    #: whether a reader is asked; else the suite measures without one
    reads = True
    #: readers by default: ``simulated`` stands for all profiles
    readers: tuple[str, ...] = ("simulated",)
    #: what each measure is, in the order of the report
    measures: ClassVar[Mapping[str, str]]
    published: Sequence[Published] = ()
    #: what differs from the paper; each is a sentence or two
    differences: Sequence[str] = ()
    #: incremented when the same item may get other values
    version = 1

    @abstractmethod
    def items(self, given: Given) -> Sequence[Item]:
        """Return every question in every arm, question by question; more questions add to those of fewer."""

    def asked(self, item: Item) -> Asked:
        """Return an item as a reader is asked."""
        raise NotImplementedError

    def graded(self, item: Item, asked: Asked, answered: Answered) -> Values:
        """Return the measures of an answer, without :attr:`Answered.effort`."""
        raise NotImplementedError

    def measured(self, item: Item) -> Values:
        """Return the measures of an item without a reader."""
        raise NotImplementedError

    def tables(self, rows: Sequence[Result]) -> Iterator[str]:
        """Yield further lines of Markdown, such as measures that are no means."""
        _ = rows
        return iter(())


def by_arm(rows: Iterable[Result]) -> dict[tuple[str, str], list[Result]]:
    """Return rows by reader and arm, in the order of their first."""
    found: dict[tuple[str, str], list[Result]] = {}
    for row in rows:
        found.setdefault((row.reader, row.arm), []).append(row)
    return found
